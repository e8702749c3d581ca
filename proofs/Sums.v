(* Sums and products over a finite list of candidates. *)

From Coq Require Import Reals List Lra Lia Arith.
Import ListNotations.
Open Scope R_scope.

Fixpoint sum (l : list nat) (f : nat -> R) : R :=
  match l with [] => 0 | i :: rest => f i + sum rest f end.

Fixpoint product (l : list nat) (f : nat -> R) : R :=
  match l with [] => 1 | i :: rest => f i * product rest f end.

(* The candidates of a list without one. *)
Definition without (j : nat) (l : list nat) : list nat := filter (fun i => negb (i =? j)%nat) l.

Lemma in_without : forall i j l, In i (without j l) <-> In i l /\ i <> j.
Proof.
  intros. unfold without. rewrite filter_In.
  destruct (Nat.eqb_spec i j); simpl; intuition congruence.
Qed.

Lemma without_absent : forall j l, ~ In j l -> without j l = l.
Proof.
  induction l as [|a l IH]; intros H; [reflexivity|]. unfold without. simpl.
  destruct (Nat.eqb_spec a j) as [->|_]; simpl; [exfalso; apply H; now left|].
  f_equal. apply IH. intro; apply H; now right.
Qed.

Lemma without_head : forall a l, ~ In a l -> without a (a :: l) = l.
Proof.
  intros a l H. unfold without. simpl. rewrite Nat.eqb_refl. simpl. fold (without a l). now apply without_absent.
Qed.

Lemma without_other : forall a j l, a <> j -> without j (a :: l) = a :: without j l.
Proof. intros a j l H. unfold without. simpl. now destruct (Nat.eqb_spec a j). Qed.

Lemma sum_le : forall l f g, (forall i, In i l -> f i <= g i) -> sum l f <= sum l g.
Proof.
  induction l as [|a l IH]; intros f g H; simpl; [lra|].
  assert (f a <= g a) by (apply H; now left).
  assert (sum l f <= sum l g) by (apply IH; intros; apply H; now right). lra.
Qed.

Lemma sum_ext : forall l f g, (forall i, In i l -> f i = g i) -> sum l f = sum l g.
Proof.
  intros. apply Rle_antisym; apply sum_le; intros i Hi; rewrite (H i Hi); lra.
Qed.

Lemma sum_scale : forall l f c, sum l (fun i => c * f i) = c * sum l f.
Proof. induction l as [|a l IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma sum_nonneg : forall l f, (forall i, In i l -> 0 <= f i) -> 0 <= sum l f.
Proof.
  induction l as [|a l IH]; intros f H; simpl; [lra|].
  assert (0 <= f a) by (apply H; now left).
  assert (0 <= sum l f) by (apply IH; intros; apply H; now right). lra.
Qed.

Lemma sum_pos : forall l f, l <> [] -> (forall i, In i l -> 0 < f i) -> 0 < sum l f.
Proof.
  destruct l as [|a l]; intros f Hl H; [congruence|]. simpl.
  assert (0 < f a) by (apply H; now left).
  assert (0 <= sum l f) by (apply sum_nonneg; intros; apply Rlt_le, H; now right). lra.
Qed.

Lemma sum_app : forall l l' f, sum (l ++ l') f = sum l f + sum l' f.
Proof. induction l as [|a l IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma product_app : forall l l' f, product (l ++ l') f = product l f * product l' f.
Proof. induction l as [|a l IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

(* The sum over a part of a list is at most the sum over the list, if all terms are non-negative. *)
Lemma sum_incl : forall l' l f, NoDup l' -> incl l' l -> (forall i, In i l -> 0 <= f i) -> sum l' f <= sum l f.
Proof.
  induction l' as [|a l' IH]; intros l f Hd Hi H; simpl; [now apply sum_nonneg|].
  destruct (in_split a l) as (l1 & l2 & ->); [apply Hi; now left|].
  inversion Hd; subst. rewrite sum_app. simpl.
  assert (sum l' f <= sum (l1 ++ l2) f) as IHH.
  { apply IH; auto.
    - intros x Hx. assert (In x (l1 ++ a :: l2)) as HH by (apply Hi; now right).
      apply in_app_iff in HH. apply in_app_iff. destruct HH as [|[->|]]; intuition.
    - intros i Hin. apply H. apply in_app_iff in Hin. apply in_app_iff. simpl. tauto. }
  rewrite sum_app in IHH. lra.
Qed.

Lemma product_nonneg : forall l f, (forall i, In i l -> 0 <= f i) -> 0 <= product l f.
Proof.
  induction l as [|a l IH]; intros f H; simpl; [lra|].
  apply Rmult_le_pos; [apply H; now left|apply IH; intros; apply H; now right].
Qed.

Lemma product_le : forall l f g, (forall i, In i l -> 0 <= f i <= g i) -> product l f <= product l g.
Proof.
  induction l as [|a l IH]; intros f g H; simpl; [lra|].
  apply Rmult_le_compat.
  - apply H; now left.
  - apply product_nonneg. intros. apply H; now right.
  - apply H; now left.
  - apply IH. intros. apply H; now right.
Qed.

Lemma product_at_most_one : forall l f, (forall i, In i l -> 0 <= f i <= 1) -> product l f <= 1.
Proof.
  intros l f H. replace 1 with (product l (fun _ => 1)); [now apply product_le|].
  clear. induction l; simpl; lra.
Qed.

(* The product over a part of a list is at least the product over the list, if all factors lie in [0, 1]. *)
Lemma product_incl :
  forall l' l f, NoDup l' -> incl l' l -> (forall i, In i l -> 0 <= f i <= 1) -> product l f <= product l' f.
Proof.
  induction l' as [|a l' IH]; intros l f Hd Hi H; simpl; [now apply product_at_most_one|].
  destruct (in_split a l) as (l1 & l2 & ->); [apply Hi; now left|].
  inversion Hd; subst.
  assert (product (l1 ++ l2) f <= product l' f) as IHH.
  { apply IH; auto.
    - intros x Hx. assert (In x (l1 ++ a :: l2)) as HH by (apply Hi; now right).
      apply in_app_iff in HH. apply in_app_iff. destruct HH as [|[->|]]; intuition.
    - intros i Hin. apply H. apply in_app_iff in Hin. apply in_app_iff. simpl. tauto. }
  rewrite product_app in *. simpl.
  assert (0 <= f a <= 1) by (apply H; apply in_app_iff; simpl; tauto).
  replace (product l1 f * (f a * product l2 f)) with (f a * (product l1 f * product l2 f)) by ring.
  apply Rmult_le_compat_l; [tauto|exact IHH].
Qed.

Lemma product_zero : forall l f i, In i l -> f i = 0 -> product l f = 0.
Proof.
  induction l as [|a l IH]; intros f i Hi H; simpl; [destruct Hi|].
  destruct Hi as [->|Hi]; [rewrite H; ring|]. rewrite (IH f i Hi H). ring.
Qed.
