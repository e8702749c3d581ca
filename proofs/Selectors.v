(* The two selectors, as exact laws over m candidates 0, 1, ..., m-1 with utilities u in log-odds.

   Exponential mechanism:  P(J = j) = exp(u_j) / sum_i exp(u_i).
   Permute-and-flip:       P(J = j) = w_j int_0^1 prod_(i <> j) (1 - s w_i) ds,   w_i = exp(u_i - max u).

   The second is the law of the largest u_i + E_i, E_i independent standard exponential noise: given that u_j + E_j
   exceeds max u, which has probability w_j, the excess is exponential again, -ln s with s uniform on (0, 1), and i stays
   below with probability 1 - s w_i. The library computes this integral (selection_law). That the algorithm, candidates in random
   order and a coin for each, has this law is a theorem of Ding et al. (2021); tests/proofs checks it exactly for all
   small cases. *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Calculus.
Import ListNotations.
Open Scope R_scope.

Definition candidates (m : nat) : list nat := seq 0 m.

Lemma in_candidates : forall i m, In i (candidates m) <-> (i < m)%nat.
Proof. intros. unfold candidates. rewrite in_seq. lia. Qed.

Lemma candidates_distinct : forall m, NoDup (candidates m).
Proof. intros. apply seq_NoDup. Qed.

(* The largest utility. *)
Fixpoint largest (m : nat) (u : nat -> R) : R :=
  match m with 0%nat => 0 | 1%nat => u 0%nat | S k => Rmax (largest k u) (u k) end.

Lemma largest_is_largest : forall m u i, (i < m)%nat -> u i <= largest m u.
Proof.
  induction m as [|m IH]; intros u i H; [lia|].
  destruct m as [|m]; [replace i with 0%nat by lia; simpl; lra|].
  change (largest (S (S m)) u) with (Rmax (largest (S m) u) (u (S m))).
  destruct (Nat.eq_dec i (S m)) as [->|]; [apply Rmax_r|].
  eapply Rle_trans; [apply (IH u i); lia|apply Rmax_l].
Qed.

Lemma largest_is_one : forall m u, (0 < m)%nat -> exists i, (i < m)%nat /\ largest m u = u i.
Proof.
  induction m as [|m IH]; intros u H; [lia|].
  destruct m as [|m]; [exists 0%nat; split; [lia|reflexivity]|].
  change (largest (S (S m)) u) with (Rmax (largest (S m) u) (u (S m))).
  destruct (IH u) as (i & Hi & E); [lia|].
  unfold Rmax. destruct (Rle_dec (largest (S m) u) (u (S m))).
  - exists (S m). split; [lia|reflexivity].
  - exists i. split; [lia|exact E].
Qed.

(* Weights relative to the largest. *)
Definition weight (m : nat) (u : nat -> R) (i : nat) : R := exp (u i - largest m u).

Lemma weight_pos : forall m u i, 0 < weight m u i.
Proof. intros. apply exp_pos. Qed.

Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof. intros x y [H| ->]; [apply Rlt_le, exp_increasing, H|lra]. Qed.

Lemma weight_at_most_one : forall m u i, (i < m)%nat -> weight m u i <= 1.
Proof.
  intros m u i H. rewrite <- exp_0. apply exp_le. assert (u i <= largest m u) by now apply largest_is_largest. lra.
Qed.

(* The probability that no candidate of a list beats a clock at s: a polynomial in s. *)
Definition silent (l : list nat) (w : nat -> R) (s : R) : R := product l (fun i => 1 - s * w i).

Lemma silent_continuous : forall l w, continuity (silent l w).
Proof.
  induction l as [|a l IH]; intros w; unfold silent; simpl.
  - apply continuity_const. now intros x y.
  - apply (continuity_mult (fun s => 1 - s * w a) (silent l w)); [apply continuity_line|apply IH].
Qed.

Definition exponential (m : nat) (u : nat -> R) (j : nat) : R :=
  exp (u j) / sum (candidates m) (fun i => exp (u i)).

Definition permute_and_flip (m : nat) (u : nat -> R) (j : nat) : R :=
  weight m u j * integral (silent (without j (candidates m)) (weight m u)) (silent_continuous _ _).

Inductive selector := Exponential | PermuteAndFlip.

Definition law (s : selector) : nat -> (nat -> R) -> nat -> R :=
  match s with Exponential => exponential | PermuteAndFlip => permute_and_flip end.

(* The derivative of "all of them are silent": the hazards of each, while the others are silent. *)
Lemma silent_derivative : forall l w x, NoDup l ->
  derivable_pt_lim (silent l w) x (- sum l (fun j => w j * silent (without j l) w x)).
Proof.
  induction l as [|a l IH]; intros w x Hd.
  - simpl. rewrite Ropp_0. apply (derivable_pt_lim_const 1).
  - inversion Hd as [|? ? Ha Hl]; subst.
    assert (derivable_pt_lim (silent (a :: l) w) x
              (- w a * silent l w x + (1 - x * w a) * (- sum l (fun j => w j * silent (without j l) w x)))) as D.
    { apply (derivable_pt_lim_mult (fun s => 1 - s * w a) (silent l w)); [apply derivative_line|now apply IH]. }
    replace (- sum (a :: l) (fun j => w j * silent (without j (a :: l)) w x))
      with (- w a * silent l w x + (1 - x * w a) * (- sum l (fun j => w j * silent (without j l) w x))); [exact D|].
    change (sum (a :: l) (fun j => w j * silent (without j (a :: l)) w x))
      with (w a * silent (without a (a :: l)) w x + sum l (fun j => w j * silent (without j (a :: l)) w x)).
    rewrite (without_head a l Ha).
    rewrite (sum_ext l (fun j => w j * silent (without j (a :: l)) w x)
               (fun j => (1 - x * w a) * (w j * silent (without j l) w x))).
    + rewrite sum_scale. ring.
    + intros j Hj. rewrite without_other by congruence.
      change (silent (a :: without j l) w x) with ((1 - x * w a) * silent (without j l) w x). ring.
Qed.

Lemma silent_in_unit : forall l (w : nat -> R) s, (forall i, In i l -> 0 <= w i <= 1) -> 0 <= s <= 1 ->
  forall i, In i l -> 0 <= 1 - s * w i <= 1.
Proof.
  intros l w s H Hs i Hi. destruct (H i Hi).
  assert (0 <= s * w i) by (apply Rmult_le_pos; lra).
  assert (s * w i <= 1 * 1) by (apply Rmult_le_compat; lra). lra.
Qed.

(* A finite sum of primitives. *)
Lemma sum_of_primitives : forall l (f : nat -> R -> R) (v : nat -> R),
  (forall j, In j l -> exists F, primitive_of F (f j) /\ F 1 = v j) ->
  exists S, primitive_of S (fun x => sum l (fun j => f j x)) /\ S 1 = sum l v.
Proof.
  induction l as [|a l IH]; intros f v H.
  - exists (fun _ => 0). split; [split|]; [reflexivity| |reflexivity]. intros. apply (derivable_pt_lim_const 0).
  - destruct (H a) as (F & (F0 & FD) & F1); [now left|].
    destruct (IH f v) as (S & (S0 & SD) & S1); [intros; apply H; now right|].
    exists (F + S)%F. unfold plus_fct. simpl. split; [split|].
    + rewrite F0, S0. ring.
    + intros x Hx. apply (derivable_pt_lim_plus F S); auto.
    + rewrite F1, S1. reflexivity.
Qed.

(* The probability that the selected candidate is in a list. *)
Lemma permute_and_flip_primitive : forall m u l,
  exists S, primitive_of S (fun x => sum l (fun j => weight m u j * silent (without j (candidates m)) (weight m u) x))
    /\ S 1 = sum l (permute_and_flip m u).
Proof.
  intros m u l.
  apply (sum_of_primitives l (fun j x => weight m u j * silent (without j (candidates m)) (weight m u) x)).
  intros j _.
  destruct (integral_is_primitive (silent (without j (candidates m)) (weight m u)) (silent_continuous _ _))
    as (F & (F0 & FD) & F1).
  exists (fun y => weight m u j * F y). split; [split|].
  - rewrite F0. ring.
  - intros x Hx. apply derivative_scaled; auto.
  - rewrite F1. reflexivity.
Qed.

(* Both are laws: non-negative, and they sum to one. *)
Theorem exponential_sums_to_one : forall m u, (0 < m)%nat -> sum (candidates m) (exponential m u) = 1.
Proof.
  intros m u Hm. unfold exponential, Rdiv.
  rewrite (sum_ext _ _ (fun i => / sum (candidates m) (fun i => exp (u i)) * exp (u i))) by (intros; ring).
  rewrite sum_scale. apply Rinv_l. apply Rgt_not_eq. apply sum_pos; [|intros; apply exp_pos].
  destruct m; [lia|]. simpl. discriminate.
Qed.

Theorem permute_and_flip_sums_to_one : forall m u, (0 < m)%nat -> sum (candidates m) (permute_and_flip m u) = 1.
Proof.
  intros m u Hm.
  destruct (permute_and_flip_primitive m u (candidates m)) as (S & (S0 & SD) & S1).
  set (w := weight m u) in *.
  set (B := silent (candidates m) w).
  set (b := fun x => - sum (candidates m) (fun j => w j * silent (without j (candidates m)) w x)).
  assert (forall x, derivable_pt_lim B x (b x)) as BD by (intros; apply silent_derivative, candidates_distinct).
  assert (B 0 = 1) as B0.
  { unfold B, silent. clear. induction (candidates m) as [|a l IH]; simpl; [reflexivity|]. rewrite IH. ring. }
  assert (B 1 = 0) as B1.
  { destruct (largest_is_one m u Hm) as (i & Hi & E).
    apply (product_zero _ _ i); [now apply in_candidates|].
    unfold w, weight. rewrite E. replace (u i - u i) with 0 by ring. rewrite exp_0. ring. }
  assert (forall x, derivable_pt_lim (fun y => (-1) * B y) x ((-1) * b x)) as ND
    by (intros; now apply derivative_scaled).
  assert (S 1 - S 0 <= (-1) * B 1 - (-1) * B 0) as H1.
  { apply (compare S (fun y => (-1) * B y) (fun x => - b x) (fun x => (-1) * b x) 0 1); auto; [lra| |].
    - intros x Hx. unfold b. rewrite Ropp_involutive. auto.
    - intros x _. lra. }
  assert ((-1) * B 1 - (-1) * B 0 <= S 1 - S 0) as H2.
  { apply (compare (fun y => (-1) * B y) S (fun x => (-1) * b x) (fun x => - b x) 0 1); auto; [lra| |].
    - intros x Hx. unfold b. rewrite Ropp_involutive. auto.
    - intros x _. lra. }
  rewrite <- S1. lra.
Qed.

Theorem exponential_nonneg : forall m u j, 0 <= exponential m u j.
Proof.
  intros. unfold exponential, Rdiv. apply Rmult_le_pos; [apply Rlt_le, exp_pos|].
  destruct m as [|m]; [simpl; rewrite Rinv_0; lra|].
  apply Rlt_le, Rinv_0_lt_compat, sum_pos; [discriminate|intros; apply exp_pos].
Qed.

Lemma weights_in_unit : forall m u i, In i (candidates m) -> 0 <= weight m u i <= 1.
Proof.
  intros m u i Hi. split; [apply Rlt_le, weight_pos|apply weight_at_most_one; now apply in_candidates].
Qed.

Theorem permute_and_flip_nonneg : forall m u j, 0 <= permute_and_flip m u j.
Proof.
  intros m u j. unfold permute_and_flip.
  destruct (integral_is_primitive (silent (without j (candidates m)) (weight m u)) (silent_continuous _ _))
    as (F & (F0 & FD) & F1).
  apply Rmult_le_pos; [apply Rlt_le, weight_pos|]. rewrite <- F1.
  assert (0 - 0 <= F 1 - F 0).
  { apply (compare (fun _ => 0) F (fun _ => 0) (silent (without j (candidates m)) (weight m u)) 0 1); auto; [lra| |].
    - intros. apply (derivable_pt_lim_const 0).
    - intros x Hx. apply product_nonneg. intros i Hi. apply in_without in Hi.
      apply (silent_in_unit (candidates m)); [apply weights_in_unit|exact Hx|tauto]. }
  lra.
Qed.
