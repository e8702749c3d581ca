(* Lemma P2 (range distance): if differences of utilities change by at most d, every probability changes by at most the
   factor exp(d), under both selectors. *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Calculus Selectors.
Import ListNotations.
Open Scope R_scope.

(* max_ij (u_i - u'_i) - (u_j - u'_j) <= d over m candidates. *)
Definition range_distance_at_most (m : nat) (u u' : nat -> R) (d : R) : Prop :=
  forall i j, (i < m)%nat -> (j < m)%nat -> (u i - u' i) - (u j - u' j) <= d.

Theorem exponential_range : forall m u u' d j, (j < m)%nat ->
  range_distance_at_most m u u' d -> exponential m u j <= exp d * exponential m u' j.
Proof.
  intros m u u' d j Hj H. unfold exponential.
  set (Z := sum (candidates m) (fun i => exp (u i))).
  set (Z' := sum (candidates m) (fun i => exp (u' i))).
  assert (0 < Z) by (apply sum_pos; [destruct m; [lia|discriminate]|intros; apply exp_pos]).
  assert (0 < Z') by (apply sum_pos; [destruct m; [lia|discriminate]|intros; apply exp_pos]).
  assert (exp (u j) * Z' <= exp d * exp (u' j) * Z) as K.
  { unfold Z, Z'. rewrite <- !sum_scale. apply sum_le. intros i Hi. apply in_candidates in Hi.
    rewrite <- !exp_plus. apply exp_le. specialize (H j i Hj Hi). lra. }
  apply (Rmult_le_reg_r (Z * Z')); [now apply Rmult_lt_0_compat|].
  replace (exp (u j) / Z * (Z * Z')) with (exp (u j) * Z') by (field; lra).
  replace (exp d * (exp (u' j) / Z') * (Z * Z')) with (exp d * exp (u' j) * Z) by (field; lra).
  exact K.
Qed.

(* The least of finitely many numbers. *)
Lemma least : forall m (f : nat -> R), (0 < m)%nat -> exists i, (i < m)%nat /\ forall j, (j < m)%nat -> f i <= f j.
Proof.
  intros m f Hm. destruct (largest_is_one m (fun i => - f i) Hm) as (i & Hi & E).
  exists i. split; [exact Hi|]. intros j Hj.
  assert (- f j <= largest m (fun i => - f i)) by now apply (largest_is_largest m (fun i => - f i)). lra.
Qed.

Theorem permute_and_flip_range : forall m u u' d j, (j < m)%nat ->
  range_distance_at_most m u u' d -> permute_and_flip m u j <= exp d * permute_and_flip m u' j.
Proof.
  intros m u u' d j Hj H. unfold permute_and_flip.
  set (w := weight m u). set (w' := weight m u'). set (l := without j (candidates m)).
  destruct (integral_is_primitive (silent l w) (silent_continuous l w)) as (F & (F0 & FD) & F1).
  destruct (integral_is_primitive (silent l w') (silent_continuous l w')) as (F' & (F0' & FD') & F1').
  rewrite <- F1, <- F1'.
  (* Shift u' by the least change c, so that it lies below u everywhere. *)
  destruct (least m (fun i => u i - u' i)) as (k & Hk & Hc); [lia|].
  set (c := u k - u' k) in *.
  set (s := exp (largest m u' + c - largest m u)).
  assert (0 < s) by apply exp_pos.
  assert (s <= 1).
  { rewrite <- exp_0. apply exp_le.
    destruct (largest_is_one m u') as (i & Hi & E); [lia|].
    specialize (Hc i Hi). cbn beta in Hc. assert (u i <= largest m u) by now apply largest_is_largest. lra. }
  (* In units of the largest of u, the weights of the shifted u' are s w', and no larger than those of u. *)
  assert (forall i, (i < m)%nat -> s * w' i <= w i) as Below.
  { intros i Hi. unfold s, w', w, weight. rewrite <- exp_plus. apply exp_le.
    specialize (Hc i Hi). cbn beta in Hc. lra. }
  assert (w j <= exp d * (s * w' j)) as Above.
  { unfold s, w', w, weight. rewrite <- !exp_plus. apply exp_le. specialize (H j k Hj Hk). fold c in H. lra. }
  assert (forall i, In i l -> (i < m)%nat) as Inside
    by (intros i Hi; apply in_candidates; apply in_without in Hi; tauto).
  assert (s * F 1 <= F' s) as Stretched.
  { assert (s * F 1 - s * F 0 <= F' (s * 1) - F' (s * 0)).
    { apply (compare (fun y => s * F y) (fun y => F' (s * y)) (fun y => s * silent l w y)
               (fun y => s * silent l w' (s * y)) 0 1); [lra| | |].
      - intros; apply derivative_scaled; auto.
      - intros x Hx. apply derivative_stretched. apply FD'.
        split; [apply Rmult_le_pos; lra|]. assert (s * x <= 1 * 1) by (apply Rmult_le_compat; lra). lra.
      - intros x Hx. apply Rmult_le_compat_l; [lra|]. apply product_le. intros i Hi. split.
        + apply (silent_in_unit l w); [|exact Hx|exact Hi].
          intros. apply weights_in_unit. apply in_candidates. auto.
        + specialize (Below i (Inside i Hi)).
          assert (x * (s * w' i) <= x * w i) by (apply Rmult_le_compat_l; lra). nra. }
    rewrite Rmult_1_r, Rmult_0_r, F0', F0 in H2. lra. }
  assert (forall x, 0 <= x <= 1 -> 0 <= silent l w' x) as Positive.
  { intros x Hx. apply product_nonneg. intros i Hi.
    apply (silent_in_unit l w'); [|exact Hx|exact Hi]. intros. apply weights_in_unit. apply in_candidates. auto. }
  assert (F' s <= F' 1) as Further.
  { assert (0 - 0 <= F' 1 - F' s); [|lra].
    apply (compare (fun _ => 0) F' (fun _ => 0) (silent l w') s 1); [lra| | |].
    - intros. apply (derivable_pt_lim_const 0).
    - intros. apply FD'. lra.
    - intros. apply Positive. lra. }
  assert (0 <= F 1) as NonNeg.
  { assert (0 - 0 <= F 1 - F 0); [|lra].
    apply (compare (fun _ => 0) F (fun _ => 0) (silent l w) 0 1); [lra| |exact FD|].
    - intros. apply (derivable_pt_lim_const 0).
    - intros x Hx. apply product_nonneg. intros i Hi.
      apply (silent_in_unit l w); [|exact Hx|exact Hi]. intros. apply weights_in_unit. apply in_candidates. auto. }
  apply Rle_trans with (exp d * (s * w' j) * F 1); [now apply Rmult_le_compat_r|].
  replace (exp d * (s * w' j) * F 1) with (exp d * w' j * (s * F 1)) by ring.
  replace (exp d * (w' j * F' 1)) with (exp d * w' j * F' 1) by ring.
  apply Rmult_le_compat_l; [|lra].
  apply Rmult_le_pos; [apply Rlt_le, exp_pos|apply Rlt_le, weight_pos].
Qed.

(* Lemma P2, with the scale of the selector. *)
Theorem lemma_1 : forall (s : selector) m u u' d scale j, 0 < scale -> (j < m)%nat ->
  range_distance_at_most m u u' d ->
  law s m (fun i => u i / scale) j <= exp (d / scale) * law s m (fun i => u' i / scale) j.
Proof.
  intros s m u u' d scale j Hs Hj H.
  assert (range_distance_at_most m (fun i => u i / scale) (fun i => u' i / scale) (d / scale)) as K.
  { intros a b Ha Hb. specialize (H a b Ha Hb).
    apply (Rmult_le_reg_r scale); [exact Hs|].
    replace (d / scale * scale) with d by (field; lra).
    replace ((u a / scale - u' a / scale - (u b / scale - u' b / scale)) * scale)
      with ((u a - u' a) - (u b - u' b)) by (field; lra). exact H. }
  destruct s; [now apply exponential_range|now apply permute_and_flip_range].
Qed.
