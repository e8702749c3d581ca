(* Sums over a finite list: of candidates, or of the outcomes of a law. *)

From Coq Require Import Reals List Lra Lia Arith.
Import ListNotations.
Open Scope R_scope.

Section Sums.

Context {A : Type}.

Fixpoint sum (l : list A) (f : A -> R) : R :=
  match l with [] => 0 | i :: rest => f i + sum rest f end.

Lemma sum_le : forall l (f g : A -> R), (forall i, In i l -> f i <= g i) -> sum l f <= sum l g.
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

End Sums.

Lemma sum_map : forall A B (g : A -> B) l f, sum (map g l) f = sum l (fun i => f (g i)).
Proof. induction l as [|a l IH]; intros; simpl; [reflexivity|]. now rewrite IH. Qed.
