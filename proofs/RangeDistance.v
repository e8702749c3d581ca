(* Lemma P2 (range distance): if differences of utilities change by at most d, every probability changes by at most the
   factor exp(d). *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Selectors.
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

(* Lemma P2, with a scale. *)
Theorem lemma_1 : forall m u u' d scale j, 0 < scale -> (j < m)%nat ->
  range_distance_at_most m u u' d ->
  exponential m (fun i => u i / scale) j <= exp (d / scale) * exponential m (fun i => u' i / scale) j.
Proof.
  intros m u u' d scale j Hs Hj H.
  assert (range_distance_at_most m (fun i => u i / scale) (fun i => u' i / scale) (d / scale)) as K.
  { intros a b Ha Hb. specialize (H a b Ha Hb).
    apply (Rmult_le_reg_r scale); [exact Hs|].
    replace (d / scale * scale) with d by (field; lra).
    replace ((u a / scale - u' a / scale - (u b / scale - u' b / scale)) * scale)
      with ((u a - u' a) - (u b - u' b)) by (field; lra). exact H. }
  now apply exponential_range.
Qed.
