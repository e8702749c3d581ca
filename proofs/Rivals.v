(* The probability that competing candidates beat one candidate: the core of Theorem C1.

   Some bad candidates i have utilities at most v + ln(a_i p) against one candidate g of utility v, where 0 <= a_i <= 1
   and the a_i sum up to at most G. Then one of the bad candidates is drawn with probability at most tail. *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Selectors.
Import ListNotations.
Open Scope R_scope.

(* tail, as a function of p = exp(-l d). *)
Definition exponential_tail (G p : R) : R := G * p / (1 + G * p).

Section Rivals.

Variables (m : nat) (u : nat -> R) (g : nat) (bad : list nat) (a : nat -> R) (G p : R).

Hypothesis g_is_a_candidate : (g < m)%nat.
Hypothesis bad_are_candidates : forall i, In i bad -> (i < m)%nat.
Hypothesis bad_are_distinct : NoDup bad.
Hypothesis g_is_not_bad : ~ In g bad.
Hypothesis p_below_one : 0 < p < 1.
Hypothesis shares : forall i, In i bad -> 0 <= a i <= 1.
Hypothesis shares_sum_up : sum bad a <= G.
Hypothesis bad_are_lighter : forall i, In i bad -> exp (u i) <= a i * p * exp (u g).

Lemma G_nonneg : 0 <= G.
Proof. eapply Rle_trans; [|exact shares_sum_up]. apply sum_nonneg. intros i Hi. apply shares, Hi. Qed.

Theorem exponential_rivals : sum bad (exponential m u) <= exponential_tail G p.
Proof.
  pose proof G_nonneg.
  set (E := sum bad (fun i => exp (u i))). set (Z := sum (candidates m) (fun i => exp (u i))).
  assert (0 < exp (u g)) by apply exp_pos.
  assert (0 <= E) by (apply sum_nonneg; intros; apply Rlt_le, exp_pos).
  assert (exp (u g) + E <= Z) as HZ.
  { apply (sum_incl (g :: bad) (candidates m) (fun i => exp (u i))).
    - now constructor.
    - intros i [<-|Hi]; apply in_candidates; auto.
    - intros; apply Rlt_le, exp_pos. }
  assert (E <= G * p * exp (u g)) as HE.
  { apply Rle_trans with (sum bad (fun i => p * exp (u g) * a i)).
    - apply sum_le. intros i Hi. specialize (bad_are_lighter i Hi). lra.
    - rewrite sum_scale. replace (G * p * exp (u g)) with (p * exp (u g) * G) by ring.
      apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|exact shares_sum_up]. }
  assert (sum bad (exponential m u) = E / Z) as ->.
  { unfold exponential, Rdiv. fold Z.
    rewrite (sum_ext _ _ (fun i => / Z * exp (u i))) by (intros; ring). rewrite sum_scale. fold E. ring. }
  unfold exponential_tail. assert (0 <= G * p) by (apply Rmult_le_pos; lra).
  apply (Rmult_le_reg_r (Z * (1 + G * p))); [apply Rmult_lt_0_compat; lra|].
  replace (E / Z * (Z * (1 + G * p))) with (E + E * (G * p)) by (field; lra).
  replace (G * p / (1 + G * p) * (Z * (1 + G * p))) with (G * p * Z) by (field; lra).
  assert (G * p * (exp (u g) + E) <= G * p * Z) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End Rivals.
