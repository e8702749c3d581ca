(* The mechanism of docs/theory.md, section 2, from counts to utilities.

   Candidates are numbered 0, ..., m-1, the last is +inf. A record is the number of the bin that contains its score: the
   first candidate that is at least as large. So B_j counts the records at or below j. *)

From Coq Require Import Reals List Lra Lia Arith Permutation.
Import ListNotations.
Open Scope R_scope.

(* 1 if a record lies at or below candidate j, else 0. *)
Definition one (x j : nat) : R := if (x <=? j)%nat then 1 else 0.

(* B_j: the number of records at or below candidate j. *)
Fixpoint at_or_below (data : list nat) (j : nat) : R :=
  match data with [] => 0 | x :: rest => one x j + at_or_below rest j end.

(* A_j = B_(j-1), and 0 for the first candidate. *)
Definition below (data : list nat) (j : nat) : R :=
  match j with 0%nat => 0 | S i => at_or_below data i end.

Definition records (data : list nat) : R := INR (length data).

Definition pos (x : R) : R := Rmax 0 x.

(* The public parameters. Slopes, prior bonus (ahead), fade and heights are in log-odds. *)
Record mechanism := {
  last : nat;              (* the number of the last candidate, +inf: there are last + 1 *)
  rate : R; offset : R;    (* the target rank is rate (n+1) + offset *)
  left : R; right : R;     (* slopes l and r *)
  height : nat -> R;       (* h_j *)
  ahead : R; fade : R      (* the prior bonus of +inf is max(0, ahead - fade n) *)
}.

Definition proper (M : mechanism) : Prop :=
  0 <= rate M <= 1 /\ 0 <= left M /\ 0 <= right M /\ 0 <= ahead M /\ 0 <= fade M.

Definition target (M : mechanism) (n : R) : R := rate M * (n + 1) + offset M.

Definition head_start (M : mechanism) (n : R) : R := pos (ahead M - fade M * n).

(* u_j = h_j - max( r (A_j - T)_+ , l (T - B_j)_+ ), and u_m = h_m - r (A_m - T)_+ + z(n). *)
Definition utility (M : mechanism) (data : list nat) (j : nat) : R :=
  let T := target M (records data) in
  let beyond := right M * pos (below data j - T) in
  let short := left M * pos (T - at_or_below data j) in
  if (j =? last M)%nat then height M j - beyond + head_start M (records data)
  else height M j - Rmax beyond short.

Lemma one_is_0_or_1 : forall x j, one x j = 0 \/ one x j = 1.
Proof. intros. unfold one. destruct (x <=? j)%nat; auto. Qed.

Lemma at_or_below_app : forall l1 l2 j, at_or_below (l1 ++ l2) j = at_or_below l1 j + at_or_below l2 j.
Proof. induction l1 as [|a l1 IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma at_or_below_nonneg : forall l j, 0 <= at_or_below l j.
Proof. induction l as [|a l IH]; intros; simpl; [lra|]. specialize (IH j). destruct (one_is_0_or_1 a j); lra. Qed.

Lemma at_or_below_rises : forall l i j, (i <= j)%nat -> at_or_below l i <= at_or_below l j.
Proof.
  induction l as [|a l IH]; intros i j H; simpl; [lra|]. specialize (IH i j H).
  unfold one. destruct (Nat.leb_spec a i), (Nat.leb_spec a j); try lra; lia.
Qed.

Lemma at_or_below_is_a_count : forall l j, exists k : nat, at_or_below l j = INR k.
Proof.
  induction l as [|a l IH]; intros; simpl; [exists 0%nat; reflexivity|].
  destruct (IH j) as (k & ->). unfold one. destruct (a <=? j)%nat.
  - exists (S k). rewrite S_INR. ring.
  - exists k. ring.
Qed.

(* The counts with one record x added. *)
Lemma at_or_below_insert : forall l1 x l2 j, at_or_below (l1 ++ x :: l2) j = at_or_below (l1 ++ l2) j + one x j.
Proof. intros. rewrite !at_or_below_app. simpl. ring. Qed.

Lemma records_insert : forall l1 (x : nat) l2, records (l1 ++ x :: l2) = records (l1 ++ l2) + 1.
Proof.
  intros. unfold records. rewrite !app_length. simpl. rewrite <- plus_n_Sm, S_INR. reflexivity.
Qed.

Lemma below_insert : forall l1 x l2 j,
  below (l1 ++ x :: l2) j = below (l1 ++ l2) j + (if (x <? j)%nat then 1 else 0).
Proof.
  intros l1 x l2 [|i]; simpl; [ring|]. rewrite at_or_below_insert. reflexivity.
Qed.

Lemma pos_nonneg : forall x, 0 <= pos x.
Proof. intros. apply Rmax_l. Qed.

Lemma pos_at_least : forall x, x <= pos x.
Proof. intros. apply Rmax_r. Qed.

Lemma pos_of_negative : forall x, x <= 0 -> pos x = 0.
Proof. intros. unfold pos. now apply Rmax_left. Qed.

(* k (.)_+ is non-decreasing, and grows by at most k times as much as its argument. *)
Lemma scaled_pos_rises : forall k x y, 0 <= k -> x <= y -> 0 <= k * pos y - k * pos x <= k * (y - x).
Proof.
  intros k x y Hk H. rewrite <- Rmult_minus_distr_l.
  assert (0 <= pos y - pos x <= y - x) as [H1 H2].
  { unfold pos, Rmax. destruct (Rle_dec 0 y), (Rle_dec 0 x); lra. }
  split; [now apply Rmult_le_pos|now apply Rmult_le_compat_l].
Qed.
