(* The core of Theorem C1 (random ranks): for all data, P(B_J < k) <= tail(T - k + 1), where G bounds the total weight
   of all candidates left of one, relative to its weight; weights are exp(height). *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Selectors Mechanism Privacy Rivals.
Import ListNotations.
Open Scope R_scope.

(* Heights never fall. *)
Definition rising (M : mechanism) : Prop :=
  forall i j, (i <= j)%nat -> (j <= last M)%nat -> height M i <= height M j.

(* G is at least max_g (w_1 + ... + w_(g-1)) / w_g. *)
Definition rivals_at_most (M : mechanism) (G : R) : Prop :=
  forall g, (g <= last M)%nat -> sum (seq 0 g) (fun i => exp (height M i)) <= G * exp (height M g).

(* The candidates that fall short of rank k. +inf does not, because it covers everything. *)
Definition short_of (M : mechanism) (data : list nat) (k : nat) : list nat :=
  filter (fun i => if Rlt_dec (at_or_below data i) (INR k) then true else false) (candidates (last M)).

Lemma in_short_of : forall M data k i,
  In i (short_of M data k) <-> (i < last M)%nat /\ at_or_below data i < INR k.
Proof.
  intros. unfold short_of. rewrite filter_In, in_candidates.
  destruct (Rlt_dec (at_or_below data i) (INR k)); intuition congruence.
Qed.

Lemma first_that : forall (P : nat -> Prop) (dec : forall i, {P i} + {~ P i}) top, P top ->
  exists g, (g <= top)%nat /\ P g /\ forall i, (i < g)%nat -> ~ P i.
Proof.
  intros P dec top. induction top as [top IH] using lt_wf_ind. intros H.
  destruct (le_lt_dec top 0) as [|Hpos].
  - exists top. repeat split; auto. intros; lia.
  - assert ((exists i, (i < top)%nat /\ P i) \/ forall i, (i < top)%nat -> ~ P i) as [(i & Hi & HP)|N].
    { clear IH H Hpos. induction top as [|t IHt]; [right; intros; lia|].
      destruct IHt as [(i & Hi & HP)|N]; [left; exists i; split; [lia|exact HP]|].
      destruct (dec t) as [HP|HN]; [left; exists t; split; [lia|exact HP]|].
      right. intros i Hi. destruct (Nat.eq_dec i t) as [->|]; [exact HN|apply N; lia]. }
    + destruct (IH i Hi HP) as (g & Hg & HPg & Hmin). exists g. repeat split; auto. lia.
    + exists top. repeat split; auto.
Qed.

Lemma count_below : forall data i k, at_or_below data i < INR k -> at_or_below data i <= INR k - 1.
Proof.
  intros data i k H. destruct (at_or_below_is_a_count data i) as (c & E). rewrite E in *.
  apply INR_lt in H. assert (S c <= k)%nat as H' by lia. apply le_INR in H'. rewrite S_INR in H'. lra.
Qed.

(* The first candidate with B_g >= T, or +inf if there is none, has at least its height as utility; all candidates that fall short lie left of it. *)
Lemma the_one_that_is_sure : forall M data, proper M -> 0 <= target M (records data) ->
  exists g, (g <= last M)%nat /\ height M g <= utility M data g /\
    forall i, (i < last M)%nat -> at_or_below data i < target M (records data) -> (i < g)%nat.
Proof.
  intros M data (Hq & Hl & Hr & Ha & Hb) HT. set (T := target M (records data)) in *.
  destruct (first_that (fun i => T <= at_or_below data i \/ i = last M)) with (top := last M) as (g & Hg & HP & Hmin).
  - intros i. destruct (Rle_dec T (at_or_below data i)); [left; now left|].
    destruct (Nat.eq_dec i (last M)); [left; now right|]. right. intros [|]; contradiction.
  - now right.
  - exists g. split; [exact Hg|]. split.
    + assert (below data g - T <= 0) as HA.
      { destruct g as [|i]; simpl; [lra|].
        assert (~ (T <= at_or_below data i \/ i = last M)) as N by (apply Hmin; lia).
        destruct (Rle_dec T (at_or_below data i)); [exfalso; apply N; now left|]. lra. }
      unfold utility. fold T. rewrite (pos_of_negative _ HA).
      destruct (Nat.eqb_spec g (last M)) as [E|E].
      * assert (0 <= head_start M (records data)) by apply pos_nonneg. lra.
      * destruct HP as [HP|]; [|contradiction].
        rewrite (pos_of_negative (T - at_or_below data g)) by lra. rewrite !Rmult_0_r, Rmax_left; lra.
    + intros i Hi Hs. destruct (le_lt_dec g i) as [H|]; [exfalso|assumption].
      destruct HP as [HP| ->]; [|lia]. pose proof (at_or_below_rises data g i H). lra.
Qed.

(* Theorem C1: k <= ceil(T) is k - 1 < T. *)
Theorem theorem_2 : forall M data G (k : nat),
  proper M -> 0 < left M -> rising M -> rivals_at_most M G ->
  0 < target M (records data) -> INR k - 1 < target M (records data) ->
  sum (short_of M data k) (output M data) <=
    exponential_tail G (exp (- left M * (target M (records data) - INR k + 1))).
Proof.
  intros M data G k HM Hleft Hrise HG HT Hk. pose proof HM as (_ & _ & Hr & _ & _).
  set (T := target M (records data)) in *. set (p := exp (- left M * (T - INR k + 1))).
  destruct (the_one_that_is_sure M data HM) as (g & Hg & Hu & Hfirst); [fold T; lra|]. fold T in Hfirst.
  assert (0 < p < 1) as Hp.
  { split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
    assert (0 < left M * (T - INR k + 1)) by (apply Rmult_lt_0_compat; lra). lra. }
  assert (forall i, In i (short_of M data k) -> (i < g)%nat) as Left.
  { intros i Hi. apply in_short_of in Hi. destruct Hi as (Hi & Hs). apply Hfirst; [exact Hi|].
    pose proof (count_below data i k Hs). lra. }
  set (a := fun i => exp (height M i - height M g)).
  assert (NoDup (short_of M data k)) as Distinct by (apply NoDup_filter, candidates_distinct).
  assert (forall i, In i (short_of M data k) -> (i < S (last M))%nat) as Inside
    by (intros i Hi; apply in_short_of in Hi; lia).
  assert (~ In g (short_of M data k)) as NotG by (intros H; specialize (Left g H); lia).
  assert (forall i, In i (short_of M data k) -> 0 <= a i <= 1) as Shares.
  { intros i Hi. split; [apply Rlt_le, exp_pos|]. rewrite <- exp_0. apply exp_le.
    assert (height M i <= height M g) by (apply Hrise; [apply Nat.lt_le_incl, Left, Hi|exact Hg]). lra. }
  assert (sum (short_of M data k) a <= G) as SumUp.
  { assert (sum (short_of M data k) a <= sum (seq 0 g) a) as H1.
    { apply sum_incl; [exact Distinct| |intros; apply Rlt_le, exp_pos].
      intros i Hi. apply in_seq. specialize (Left i Hi). lia. }
    eapply Rle_trans; [exact H1|]. specialize (HG g Hg).
    rewrite (sum_ext _ a (fun i => exp (- height M g) * exp (height M i)))
      by (intros; unfold a; rewrite <- exp_plus; f_equal; ring).
    rewrite sum_scale. apply Rle_trans with (exp (- height M g) * (G * exp (height M g))).
    - apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|exact HG].
    - rewrite exp_Ropp. right. field. apply Rgt_not_eq, exp_pos. }
  assert (forall i, In i (short_of M data k) ->
            exp (utility M data i) <= a i * p * exp (utility M data g)) as Lighter.
  { intros i Hi. apply in_short_of in Hi. destruct Hi as (Hi & Hs). pose proof (count_below data i k Hs) as Hc.
    unfold a, p. rewrite <- !exp_plus. apply exp_le.
    assert (utility M data i <= height M i - left M * (T - INR k + 1)); [|lra].
    unfold utility. fold T. destruct (Nat.eqb_spec i (last M)); [lia|].
    assert (left M * (T - INR k + 1) <= left M * pos (T - at_or_below data i)).
    { apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [|apply pos_at_least]. lra. }
    pose proof (Rmax_r (right M * pos (below data i - T)) (left M * pos (T - at_or_below data i))). lra. }
  unfold output. apply (exponential_rivals _ _ g _ a); auto. lia.
Qed.

(* m - 1 is always a valid G. *)
Theorem rivals_at_most_all_others : forall M, rising M -> rivals_at_most M (INR (last M)).
Proof.
  intros M Hrise g Hg.
  apply Rle_trans with (sum (seq 0 g) (fun _ => exp (height M g) * 1)).
  - apply sum_le. intros i Hi. apply in_seq in Hi. rewrite Rmult_1_r. apply exp_le, Hrise; lia.
  - rewrite sum_scale. replace (sum (seq 0 g) (fun _ => 1)) with (INR g).
    + rewrite Rmult_comm. apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|now apply le_INR].
    + clear. generalize 0%nat. induction g as [|g IH]; intros st; [reflexivity|].
      rewrite S_INR. simpl sum. rewrite <- IH. ring.
Qed.
