(* The exponential mechanism, as an exact law over m candidates 0, 1, ..., m-1 with utilities u in log-odds:
   P(J = j) = exp(u_j) / sum_i exp(u_i). *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Definition candidates (m : nat) : list nat := seq 0 m.

Lemma in_candidates : forall i m, In i (candidates m) <-> (i < m)%nat.
Proof. intros. unfold candidates. rewrite in_seq. lia. Qed.

Lemma candidates_distinct : forall m, NoDup (candidates m).
Proof. intros. apply seq_NoDup. Qed.

Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof. intros x y [H| ->]; [apply Rlt_le, exp_increasing, H|lra]. Qed.

Definition exponential (m : nat) (u : nat -> R) (j : nat) : R :=
  exp (u j) / sum (candidates m) (fun i => exp (u i)).

(* It is a law: non-negative, and it sums to one. *)
Theorem exponential_sums_to_one : forall m u, (0 < m)%nat -> sum (candidates m) (exponential m u) = 1.
Proof.
  intros m u Hm. unfold exponential, Rdiv.
  rewrite (sum_ext _ _ (fun i => / sum (candidates m) (fun i => exp (u i)) * exp (u i))) by (intros; ring).
  rewrite sum_scale. apply Rinv_l. apply Rgt_not_eq. apply sum_pos; [|intros; apply exp_pos].
  destruct m; [lia|]. simpl. discriminate.
Qed.

Theorem exponential_nonneg : forall m u j, 0 <= exponential m u j.
Proof.
  intros. unfold exponential, Rdiv. apply Rmult_le_pos; [apply Rlt_le, exp_pos|].
  destruct m as [|m]; [simpl; rewrite Rinv_0; lra|].
  apply Rlt_le, Rinv_0_lt_compat, sum_pos; [discriminate|intros; apply exp_pos].
Qed.
