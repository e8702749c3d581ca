(* Theorem P1 (privacy): from the counts of neighbours to the loss of the exponential mechanism. *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Selectors RangeDistance Mechanism.
Import ListNotations.
Open Scope R_scope.

(* One record is replaced: x by y, at any position. *)
Definition replaced (data data' : list nat) : Prop :=
  exists l1 x y l2, data = l1 ++ x :: l2 /\ data' = l1 ++ y :: l2.

(* One record is added to the first data set. *)
Definition added (data data' : list nat) : Prop := exists l1 x l2, data = l1 ++ l2 /\ data' = l1 ++ x :: l2.

Definition added_or_removed (data data' : list nat) : Prop := added data data' \/ added data' data.

(* The losses of Theorem P1. *)
Definition replace_one_loss (M : mechanism) : R := left M + right M.

Definition add_remove_loss (M : mechanism) : R :=
  Rmax (Rmax (left M) (right M + fade M))
       (Rmax (rate M * (left M + right M)) ((1 - rate M) * (left M + right M) + fade M)).

Definition change (M : mechanism) (data data' : list nat) (j : nat) : R := utility M data' j - utility M data j.

Lemma max_change : forall a b c d lo hi, lo <= a - c <= hi -> lo <= b - d <= hi -> lo <= Rmax a b - Rmax c d <= hi.
Proof. intros. unfold Rmax. destruct (Rle_dec a b), (Rle_dec c d); lra. Qed.

(* Replacing: every utility changes by at most l in one direction and at most r in the other, the same for all. *)
Lemma replacing_upwards : forall M l1 x y l2 j, proper M -> (x <= y)%nat ->
  - left M <= change M (l1 ++ x :: l2) (l1 ++ y :: l2) j <= right M.
Proof.
  intros M l1 x y l2 j (Hq & Hl & Hr & Ha & Hb) Hxy. unfold change, utility.
  rewrite !records_insert, !below_insert, !at_or_below_insert.
  set (T := target M (records (l1 ++ l2) + 1)).
  set (h := head_start M (records (l1 ++ l2) + 1)).
  set (A := below (l1 ++ l2) j). set (B := at_or_below (l1 ++ l2) j).
  set (ax := if (x <? j)%nat then 1 else 0). set (ay := if (y <? j)%nat then 1 else 0).
  assert (0 <= ax - ay <= 1) as Fa by (unfold ax, ay; destruct (Nat.ltb_spec x j), (Nat.ltb_spec y j); try lra; lia).
  assert (0 <= one x j - one y j <= 1) as Fb
    by (unfold one; destruct (Nat.leb_spec x j), (Nat.leb_spec y j); try lra; lia).
  assert (0 <= right M * pos (A + ax - T) - right M * pos (A + ay - T) <= right M * (ax - ay)) as Pa.
  { replace (ax - ay) with (A + ax - T - (A + ay - T)) by ring. apply scaled_pos_rises; lra. }
  assert (0 <= left M * pos (T - (B + one y j)) - left M * pos (T - (B + one x j)) <=
          left M * (one x j - one y j)) as Pb.
  { replace (one x j - one y j) with (T - (B + one y j) - (T - (B + one x j))) by ring. apply scaled_pos_rises; lra. }
  assert (right M * (ax - ay) <= right M * 1) by (apply Rmult_le_compat_l; lra).
  assert (left M * (one x j - one y j) <= left M * 1) by (apply Rmult_le_compat_l; lra).
  destruct (j =? last M)%nat; [lra|].
  assert (- right M <= Rmax (right M * pos (A + ay - T)) (left M * pos (T - (B + one y j)))
          - Rmax (right M * pos (A + ax - T)) (left M * pos (T - (B + one x j))) <= left M)
    by (apply max_change; lra).
  lra.
Qed.

Theorem theorem_1a_range : forall M data data', proper M -> replaced data data' ->
  range_distance_at_most (S (last M)) (utility M data) (utility M data') (replace_one_loss M).
Proof.
  intros M data data' HM (l1 & x & y & l2 & -> & ->) i j _ _. unfold replace_one_loss.
  destruct (Nat.le_ge_cases x y) as [H|H].
  - pose proof (replacing_upwards M l1 x y l2 i HM H). pose proof (replacing_upwards M l1 x y l2 j HM H).
    unfold change in *. lra.
  - pose proof (replacing_upwards M l1 y x l2 i HM H). pose proof (replacing_upwards M l1 y x l2 j HM H).
    unfold change in *. lra.
Qed.

(* The table of Theorem P1b: a record is added in bin i, j is any candidate. *)
Inductive where_it_lies (M : mechanism) (i j : nat) (D : R) : Prop :=
  | before_it : (j < i)%nat ->
      - (rate M * left M) <= D <= rate M * right M -> where_it_lies M i j D
  | at_it : j = i -> j <> last M ->
      0 <= D <= Rmax ((1 - rate M) * left M) (rate M * right M) -> where_it_lies M i j D
  | after_it : (i < j)%nat -> j <> last M ->
      - ((1 - rate M) * right M) <= D <= (1 - rate M) * left M -> where_it_lies M i j D
  | infinity_after_it : (i < j)%nat -> j = last M ->
      - ((1 - rate M) * right M) - fade M <= D <= 0 -> where_it_lies M i j D
  | infinity_at_it : j = i -> j = last M ->
      - fade M <= D <= rate M * right M -> where_it_lies M i j D.

Lemma table : forall M l1 i l2 j, proper M -> (i <= last M)%nat -> (j <= last M)%nat ->
  where_it_lies M i j (change M (l1 ++ l2) (l1 ++ i :: l2) j).
Proof.
  intros M l1 i l2 j (Hq & Hl & Hr & Ha & Hb) Hi Hj. unfold change, utility.
  rewrite records_insert, below_insert, at_or_below_insert.
  set (n := records (l1 ++ l2)).
  replace (target M (n + 1)) with (target M n + rate M) by (unfold target; ring).
  set (T := target M n). set (A := below (l1 ++ l2) j). set (B := at_or_below (l1 ++ l2) j).
  (* The penalty right of the target falls by q r below i and at i, and rises by (1-q) r above it (q is the rate). *)
  assert (0 <= right M * pos (A - T) - right M * pos (A + 0 - (T + rate M)) <= rate M * right M) as Rstay.
  { replace (rate M * right M) with (right M * (A - T - (A + 0 - (T + rate M)))) by ring. apply scaled_pos_rises; lra. }
  assert (0 <= right M * pos (A + 1 - (T + rate M)) - right M * pos (A - T) <= (1 - rate M) * right M) as Rmove.
  { replace ((1 - rate M) * right M) with (right M * (A + 1 - (T + rate M) - (A - T))) by ring.
    apply scaled_pos_rises; lra. }
  (* The penalty left of it rises by q l below i, and falls by (1-q) l at i and above it. *)
  assert (0 <= left M * pos (T + rate M - (B + 0)) - left M * pos (T - B) <= rate M * left M) as Lstay.
  { replace (rate M * left M) with (left M * (T + rate M - (B + 0) - (T - B))) by ring. apply scaled_pos_rises; lra. }
  assert (0 <= left M * pos (T - B) - left M * pos (T + rate M - (B + 1)) <= (1 - rate M) * left M) as Lmove.
  { replace ((1 - rate M) * left M) with (left M * (T - B - (T + rate M - (B + 1)))) by ring.
    apply scaled_pos_rises; lra. }
  (* The prior bonus falls by at most the fade. *)
  assert (- fade M <= head_start M (n + 1) - head_start M n <= 0) as H.
  { unfold head_start. pose proof (scaled_pos_rises 1 (ahead M - fade M * (n + 1)) (ahead M - fade M * n)). lra. }
  assert (0 <= rate M * left M) by (apply Rmult_le_pos; lra).
  assert (0 <= rate M * right M) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 - rate M) * left M) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 - rate M) * right M) by (apply Rmult_le_pos; lra).
  pose proof (Rmax_l ((1 - rate M) * left M) (rate M * right M)).
  pose proof (Rmax_r ((1 - rate M) * left M) (rate M * right M)).
  destruct (lt_eq_lt_dec j i) as [[Hlt| ->]|Hgt].
  - apply before_it; [exact Hlt|]. unfold one.
    destruct (Nat.ltb_spec i j); [lia|]. destruct (Nat.leb_spec i j); [lia|].
    destruct (Nat.eqb_spec j (last M)); [lia|].
    pose proof (max_change (right M * pos (A + 0 - (T + rate M))) (left M * pos (T + rate M - (B + 0)))
                  (right M * pos (A - T)) (left M * pos (T - B)) (- (rate M * right M)) (rate M * left M)).
    lra.
  - unfold one. rewrite Nat.ltb_irrefl, Nat.leb_refl. destruct (Nat.eqb_spec i (last M)) as [E|E].
    + apply infinity_at_it; [reflexivity|exact E|]. lra.
    + apply at_it; [reflexivity|exact E|].
      pose proof (max_change (right M * pos (A + 0 - (T + rate M))) (left M * pos (T + rate M - (B + 1)))
                    (right M * pos (A - T)) (left M * pos (T - B))
                    (- Rmax ((1 - rate M) * left M) (rate M * right M)) 0).
      lra.
  - unfold one. destruct (Nat.ltb_spec i j); [|lia]. destruct (Nat.leb_spec i j); [|lia].
    destruct (Nat.eqb_spec j (last M)) as [E|E].
    + apply infinity_after_it; [exact Hgt|exact E|]. lra.
    + apply after_it; [exact Hgt|exact E|].
      pose proof (max_change (right M * pos (A + 1 - (T + rate M))) (left M * pos (T + rate M - (B + 1)))
                    (right M * pos (A - T)) (left M * pos (T - B))
                    (- ((1 - rate M) * left M)) ((1 - rate M) * right M)).
      lra.
Qed.

Lemma adding : forall M l1 i l2 j k, proper M -> (i <= last M)%nat -> (j <= last M)%nat -> (k <= last M)%nat ->
  change M (l1 ++ l2) (l1 ++ i :: l2) j - change M (l1 ++ l2) (l1 ++ i :: l2) k <= add_remove_loss M.
Proof.
  intros M l1 i l2 j k HM Hi Hj Hk.
  pose proof (table M l1 i l2 j HM Hi Hj) as TJ. pose proof (table M l1 i l2 k HM Hi Hk) as TK.
  destruct HM as (Hq & Hl & Hr & Ha & Hb).
  remember (change M (l1 ++ l2) (l1 ++ i :: l2) j) as Dj. remember (change M (l1 ++ l2) (l1 ++ i :: l2) k) as Dk.
  clear HeqDj HeqDk.
  assert (left M <= add_remove_loss M) by (eapply Rle_trans; [apply Rmax_l|apply Rmax_l]).
  assert (right M + fade M <= add_remove_loss M) by (eapply Rle_trans; [apply Rmax_r|apply Rmax_l]).
  assert (rate M * (left M + right M) <= add_remove_loss M) by (eapply Rle_trans; [apply Rmax_l|apply Rmax_r]).
  assert ((1 - rate M) * (left M + right M) + fade M <= add_remove_loss M)
    by (eapply Rle_trans; [apply Rmax_r|apply Rmax_r]).
  remember (add_remove_loss M) as L. clear HeqL.
  assert (0 <= rate M * left M) by (apply Rmult_le_pos; lra).
  assert (0 <= rate M * right M) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 - rate M) * left M) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 - rate M) * right M) by (apply Rmult_le_pos; lra).
  assert (Rmax ((1 - rate M) * left M) (rate M * right M) = (1 - rate M) * left M
          \/ Rmax ((1 - rate M) * left M) (rate M * right M) = rate M * right M) as Cases
    by (unfold Rmax; destruct (Rle_dec ((1 - rate M) * left M) (rate M * right M)); auto).
  destruct TJ, TK; try lia; destruct Cases as [E|E]; try rewrite E in *; lra.
Qed.

(* Theorem P1b for utilities, in both directions. *)
Theorem theorem_1b_range : forall M data data', proper M ->
  (forall x, In x data -> (x <= last M)%nat) -> (forall x, In x data' -> (x <= last M)%nat) ->
  added_or_removed data data' ->
  range_distance_at_most (S (last M)) (utility M data) (utility M data') (add_remove_loss M).
Proof.
  intros M data data' HM Hd Hd' [(l1 & x & l2 & -> & ->)|(l1 & x & l2 & -> & ->)] i j Hi Hj.
  - assert (x <= last M)%nat as Hx by (apply Hd', in_app_iff; right; now left).
    pose proof (adding M l1 x l2 j i HM Hx ltac:(lia) ltac:(lia)). unfold change in *. lra.
  - assert (x <= last M)%nat as Hx by (apply Hd, in_app_iff; right; now left).
    pose proof (adding M l1 x l2 i j HM Hx ltac:(lia) ltac:(lia)). unfold change in *. lra.
Qed.

(* The released index, and the privacy loss at every output. *)
Definition output (M : mechanism) (data : list nat) (j : nat) : R :=
  exponential (S (last M)) (utility M data) j.

Definition loss_at_most (M : mechanism) (data data' : list nat) (d : R) : Prop :=
  forall j, (j <= last M)%nat -> output M data j <= exp d * output M data' j.

Lemma loss_of_range : forall M data data' d,
  range_distance_at_most (S (last M)) (utility M data) (utility M data') d -> loss_at_most M data data' d.
Proof.
  intros M data data' d H j Hj. unfold output.
  apply exponential_range; try lia; exact H.
Qed.

Theorem theorem_1a : forall M data data', proper M -> replaced data data' ->
  loss_at_most M data data' (replace_one_loss M).
Proof. intros. apply loss_of_range. now apply theorem_1a_range. Qed.

(* The bins of all records are among the candidates. *)
Definition in_bins (M : mechanism) (data : list nat) : Prop := forall x, In x data -> (x <= last M)%nat.

Theorem theorem_1b : forall M data data', proper M -> in_bins M data -> in_bins M data' ->
  added_or_removed data data' -> loss_at_most M data data' (add_remove_loss M).
Proof. intros. apply loss_of_range. now apply theorem_1b_range. Qed.

(* Without a prior bonus, or if it does not fade, the loss is that with z_1 = 0. *)
Definition without_fading (M : mechanism) : mechanism :=
  Build_mechanism (last M) (rate M) (offset M) (left M) (right M) (height M) (ahead M) 0.

Theorem theorem_1b_without_head_start : forall M data data', proper M -> in_bins M data -> in_bins M data' ->
  ahead M = 0 -> added_or_removed data data' -> loss_at_most M data data' (add_remove_loss (without_fading M)).
Proof.
  intros M data data' HM Hd Hd' H0 H. apply loss_of_range.
  assert (forall D j, utility M D j = utility (without_fading M) D j) as E.
  { intros D j. unfold utility, head_start, without_fading. cbn. destruct (j =? last M)%nat; [|reflexivity].
    rewrite H0. f_equal.
    assert (0 <= records D) by apply pos_INR. destruct HM as (_ & _ & _ & _ & Hb).
    assert (0 <= fade M * records D) by now apply Rmult_le_pos.
    rewrite !pos_of_negative; lra. }
  intros i j Hi Hj. rewrite !E.
  apply (theorem_1b_range (without_fading M) data data'); auto.
  destruct HM as (? & ? & ? & ? & ?). repeat split; cbn; tauto || lra.
Qed.

(* (c) Groups: k steps from neighbour to neighbour. *)
Inductive steps (neighbours : list nat -> list nat -> Prop) : nat -> list nat -> list nat -> Prop :=
  | none : forall data, steps neighbours 0 data data
  | more : forall k data data' data'', neighbours data data' -> steps neighbours k data' data'' ->
      steps neighbours (S k) data data''.

Theorem theorem_1c : forall M d (neighbours : list nat -> list nat -> Prop),
  (forall data data', neighbours data data' -> loss_at_most M data data' d) ->
  forall k data data', steps neighbours k data data' -> loss_at_most M data data' (INR k * d).
Proof.
  intros M d nb H k data data' Hs. induction Hs as [data|k data data' data'' Hn Hs IH]; intros j Hj.
  - simpl INR. rewrite Rmult_0_l, exp_0. lra.
  - rewrite S_INR. replace ((INR k + 1) * d) with (d + INR k * d) by ring. rewrite exp_plus.
    eapply Rle_trans; [apply (H data data' Hn j Hj)|]. rewrite Rmult_assoc.
    apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|apply IH, Hj].
Qed.

(* From single outputs to sets of outputs. *)
Theorem loss_of_events : forall M data data' d l, loss_at_most M data data' d ->
  (forall j, In j l -> (j <= last M)%nat) -> sum l (output M data) <= exp d * sum l (output M data').
Proof. intros M data data' d l H Hl. rewrite <- sum_scale. apply sum_le. intros j Hj. apply H. auto. Qed.
