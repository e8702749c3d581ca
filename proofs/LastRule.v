(* Theorem W3 (price of the last rule) of docs/theory-one-number.md, for noises of finitely many values.

   As in Mechanism.v, candidates are numbered 0, ..., m-1, the last is +inf, and a record is the number of its bin. *)

From Coq Require Import Reals List Lra Lia Arith ZArith Bool.
From Confide Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* Finite laws: outcomes with their probabilities. *)
Definition law (A : Type) := list (A * R).

Definition mean {A} (L : law A) (f : A -> R) : R := sum L (fun o => snd o * f (fst o)).

Definition is_law {A} (L : law A) : Prop := (forall o, In o L -> 0 <= snd o) /\ mean L (fun _ => 1) = 1.

(* Noises X_1, ..., X_(m-1), independent of each other. *)
Fixpoint independent (noises : list (law Z)) : law (list Z) :=
  match noises with
  | [] => [([], 1)]
  | X :: rest => flat_map (fun w => map (fun x => (fst x :: fst w, snd x * snd w)) X) (independent rest)
  end.

(* Mean 0, and E[X - g | X > g] <= c for every integer g >= 0 with P(X > g) > 0. *)
Definition noise_of_price (c : R) (X : law Z) : Prop :=
  is_law X /\ mean X IZR = 0 /\
  forall g, (0 <= g)%Z ->
    mean X (fun x => if (g <? x)%Z then IZR (x - g) else 0) <= c * mean X (fun x => if (g <? x)%Z then 1 else 0).

(* W_i, of the noises w of the bins beyond candidate i. *)
Definition total (w : list Z) : Z := fold_right Z.add 0%Z w.

(* Candidate i and all beyond it but +inf are reached: W_j <= a_j, where a_j is a count less the target rank. *)
Fixpoint all_reached (a : nat -> Z) (i : nat) (w : list Z) : bool :=
  match w with [] => true | _ :: rest => (total w <=? a i)%Z && all_reached a (S i) rest end.

(* The least candidate from i on such that it and all beyond it are reached, or +inf. *)
Fixpoint last_rule (a : nat -> Z) (i : nat) (w : list Z) : nat :=
  match w with [] => i | _ :: rest => if all_reached a i w then i else last_rule a (S i) rest end.

(* Means *)

Lemma mean_le : forall A (L : law A) f g, is_law L ->
  (forall o, In o L -> f (fst o) <= g (fst o)) -> mean L f <= mean L g.
Proof. intros A L f g [H _] Hfg. apply sum_le. intros o Ho. apply Rmult_le_compat_l; auto. Qed.

Lemma mean_plus : forall A (L : law A) f g, mean L (fun x => f x + g x) = mean L f + mean L g.
Proof. unfold mean. induction L as [|o L IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma mean_scale : forall A (L : law A) k f, mean L (fun x => k * f x) = k * mean L f.
Proof. unfold mean. intros. rewrite <- sum_scale. apply sum_ext. intros. ring. Qed.

Lemma mean_at_least : forall A (L : law A) k f, is_law L -> (forall x, k <= f x) -> k <= mean L f.
Proof.
  intros A L k f HL H. apply Rle_trans with (mean L (fun _ => k * 1)).
  - rewrite mean_scale. destruct HL as [_ ->]. lra.
  - apply mean_le; [exact HL|]. intros o _. rewrite Rmult_1_r. apply H.
Qed.

Lemma mean_independent : forall X rest f,
  mean (independent (X :: rest)) f = mean (independent rest) (fun w => mean X (fun x => f (x :: w))).
Proof.
  intros X rest f. simpl. unfold mean at 1 2.
  induction (independent rest) as [|[w p] L IH]; [reflexivity|]. simpl. rewrite sum_app, IH. f_equal. clear.
  unfold mean. rewrite <- sum_scale. induction X as [|x X IH]; [reflexivity|]. simpl. rewrite IH. ring.
Qed.

Lemma independent_is_law : forall noises, Forall is_law noises -> is_law (independent noises).
Proof.
  induction 1 as [|X rest [H1 H2] _ [IH1 IH2]]; split.
  - intros o [<-|[]]. simpl. lra.
  - unfold mean. simpl. ring.
  - intros o Ho. apply in_flat_map in Ho. destruct Ho as (w & Hw & Ho). apply in_map_iff in Ho.
    destruct Ho as (x & <- & Hx). apply Rmult_le_pos; auto.
  - rewrite mean_independent, H2. exact IH2.
Qed.

Lemma noises_are_laws : forall c noises, Forall (noise_of_price c) noises -> is_law (independent noises).
Proof. intros c noises H. apply independent_is_law. eapply Forall_impl; [|exact H]. now intros X [HX _]. Qed.

Lemma length_of_outcome : forall noises o, In o (independent noises) -> length (fst o) = length noises.
Proof.
  induction noises as [|X rest IH]; intros o Ho; [destruct Ho as [<-|[]]; reflexivity|].
  apply in_flat_map in Ho. destruct Ho as (w & Hw & Ho). apply in_map_iff in Ho. destruct Ho as (x & <- & _).
  simpl. f_equal. now apply IH.
Qed.

(* The walk W_(m-1) = 0, W_(m-2), ..., stopped at the first candidate that is not reached *)

(* One step of the walk from w, which the bound b allows; b' is the next bound. *)
Lemma step : forall c X w b b', 0 <= c -> noise_of_price c X -> (w <= b)%Z -> (b' <= b)%Z ->
  IZR w <= mean X (fun x => if (x + w <=? b')%Z then IZR (x + w) else IZR b + c).
Proof.
  intros c X w b b' Hc (HX & Hmean & Hprice) Hw Hb. specialize (Hprice (b - w)%Z ltac:(lia)).
  set (excess := fun x => if (b - w <? x)%Z then IZR (x - (b - w)) else 0) in *.
  set (beyond := fun x => if (b - w <? x)%Z then 1 else 0) in *.
  apply Rle_trans with (mean X (fun x => IZR w * 1 + (IZR x + (-1 * excess x + c * beyond x)))).
  - rewrite !mean_plus, !mean_scale, Hmean. destruct HX as [_ ->]. lra.
  - apply mean_le; [exact HX|]. intros o _. set (x := fst o). unfold excess, beyond.
    destruct (Z.ltb_spec (b - w) x), (Z.leb_spec (x + w) b'); try lia; rewrite ?minus_IZR, ?plus_IZR; try lra.
    assert (IZR (x + w) <= IZR b) as H1 by (apply IZR_le; lia). rewrite plus_IZR in H1. lra.
Qed.

(* W_i while candidate i and all beyond it are reached; after the walk has stopped, a_J + c for the selected J. *)
Definition stopped (c : R) (a : nat -> Z) (i : nat) (w : list Z) : R :=
  if all_reached a i w then IZR (total w) else IZR (a (last_rule a i w)) + c.

Lemma reached_first : forall a i w, all_reached a i w = true -> last_rule a i w = i.
Proof. intros a i [|x w] H; [reflexivity|]. cbn [last_rule]. now rewrite H. Qed.

Lemma reached_gap : forall a i w, (0 <= a (length w + i)%nat)%Z -> all_reached a i w = true -> (total w <= a i)%Z.
Proof. intros a i [|x w] Ha H; [exact Ha|]. apply andb_prop in H. now apply Z.leb_le. Qed.

Lemma stopped_walk : forall c a noises, 0 <= c -> (forall j, (a j <= a (S j))%Z) -> Forall (noise_of_price c) noises ->
  forall i, (0 <= a (length noises + i)%nat)%Z -> 0 <= mean (independent noises) (stopped c a i).
Proof.
  intros c a noises Hc Hrise H. induction H as [|X rest HX Hrest IH]; intros i Ha.
  - unfold mean, stopped. simpl. lra.
  - rewrite mean_independent. simpl in Ha. rewrite plus_n_Sm in Ha. eapply Rle_trans; [exact (IH (S i) Ha)|].
    apply mean_le; [exact (noises_are_laws c rest Hrest)|].
    intros o Ho. apply length_of_outcome in Ho. set (w := fst o) in *.
    unfold stopped. cbn [last_rule all_reached]. destruct (all_reached a (S i) w) eqn:E.
    + rewrite (reached_first _ _ _ E). eapply Rle_trans.
      * apply (step c X (total w) (a (S i)) (a i)); auto. apply reached_gap; [now rewrite Ho|exact E].
      * apply mean_le; [apply HX|]. intros x _. rewrite andb_true_r. simpl total. fold (total w).
        destruct (_ <=? _)%Z; lra.
    + (* the walk has stopped before *)
      apply mean_at_least; [apply HX|]. intros x. cbv beta. rewrite andb_false_r. lra.
Qed.

(* E[a_J] >= -c for the index J that the last rule selects. *)
Theorem price_of_the_last_rule : forall c a noises, 0 <= c -> (forall j, (a j <= a (S j))%Z) ->
  Forall (noise_of_price c) noises -> (0 <= a (length noises))%Z ->
  - c <= mean (independent noises) (fun w => IZR (a (last_rule a 0 w))).
Proof.
  intros c a noises Hc Hrise H Ha. pose proof (noises_are_laws c noises H) as L.
  assert (0 <= mean (independent noises) (fun w => IZR (a (last_rule a 0 w)) + c * 1)) as K.
  { eapply Rle_trans; [apply (stopped_walk c a noises Hc Hrise H 0); now rewrite Nat.add_0_r|].
    apply mean_le; [exact L|]. intros o Ho. apply length_of_outcome in Ho. unfold stopped.
    destruct (all_reached a 0 (fst o)) eqn:E; [|lra]. rewrite (reached_first _ _ _ E).
    apply reached_gap in E; [|now rewrite Ho, Nat.add_0_r]. apply IZR_le in E. lra. }
  rewrite mean_plus, mean_scale in K. destruct L as [_ L]. rewrite L in K. lra.
Qed.

(* From the index to coverage *)

(* B_j: the number of records at or below candidate j. *)
Definition count (data : list nat) (j : nat) : Z := Z.of_nat (length (filter (fun x => x <=? j)%nat data)).

(* The candidate that is released, from the records, the target rank and the noises. *)
Definition threshold (data : list nat) (T : Z) (w : list Z) : nat := last_rule (fun j => count data j - T)%Z 0 w.

(* Each point in turn as the new one, with the others as the records; then the law with equal probabilities. *)
Fixpoint choices (points : list nat) : list (nat * list nat) :=
  match points with [] => [] | x :: rest => (x, rest) :: map (fun s => (fst s, x :: snd s)) (choices rest) end.

Definition one_is_new (points : list nat) : law (nat * list nat) :=
  map (fun s => (s, / INR (length points))) (choices points).

(* The probability, over the noises and the new point, that the new point is at or below the threshold. *)
Definition coverage (points : list nat) (T : Z) (noises : list (law Z)) : R :=
  mean (independent noises) (fun w =>
    mean (one_is_new points) (fun s => if (fst s <=? threshold (snd s) T w)%nat then 1 else 0)).

(* Fewer candidates reached, a threshold further right. *)
Lemma fewer_reached : forall a a' w i, (forall j, (a' j <= a j)%Z) ->
  all_reached a' i w = true -> all_reached a i w = true.
Proof.
  intros a a' w. induction w as [|x w IH]; intros i H; [reflexivity|]. cbn [all_reached].
  rewrite !andb_true_iff, !Z.leb_le. intros [H1 H2]. pose proof (H i). split; [lia|now apply IH].
Qed.

Lemma last_rule_from : forall a w i, (i <= last_rule a i w)%nat.
Proof.
  intros a w. induction w as [|x w IH]; intros i; [reflexivity|]. cbn [last_rule]. specialize (IH (S i)).
  destruct (all_reached a i (x :: w)); lia.
Qed.

Lemma last_rule_falls : forall a a' w i, (forall j, (a' j <= a j)%Z) -> (last_rule a i w <= last_rule a' i w)%nat.
Proof.
  intros a a' w. induction w as [|x w IH]; intros i H; [reflexivity|].
  pose proof (fewer_reached a a' (x :: w) i H). pose proof (last_rule_from a' (x :: w) i).
  specialize (IH (S i) H). cbn [last_rule] in *.
  destruct (all_reached a i (x :: w)), (all_reached a' i (x :: w)); intuition (lia || discriminate).
Qed.

Lemma count_rises : forall data j, (count data j <= count data (S j))%Z.
Proof.
  intros. apply inj_le. induction data as [|x data IH]; [reflexivity|]. cbn [filter].
  destruct (Nat.leb_spec x j), (Nat.leb_spec x (S j)); simpl; lia.
Qed.

Lemma count_all : forall data j, (forall x, In x data -> (x <= j)%nat) -> count data j = Z.of_nat (length data).
Proof.
  intros data j H. unfold count. f_equal. induction data as [|x data IH]; [reflexivity|]. simpl.
  destruct (Nat.leb_spec x j) as [_|C]; [|specialize (H x (or_introl eq_refl)); lia].
  simpl. f_equal. apply IH. intros y Hy. apply H. now right.
Qed.

Lemma count_of_the_others : forall points s j, In s (choices points) -> (count (snd s) j <= count points j)%Z.
Proof.
  intros points s j H. apply inj_le. revert s H.
  induction points as [|x rest IH]; intros s; [intros []|]. intros [<-|H]; simpl.
  - destruct (x <=? j)%nat; simpl; lia.
  - apply in_map_iff in H. destruct H as (s' & <- & H). specialize (IH s' H). simpl.
    destruct (x <=? j)%nat; simpl; lia.
Qed.

Lemma new_at_or_below : forall points j,
  sum (choices points) (fun s => if (fst s <=? j)%nat then 1 else 0) = IZR (count points j).
Proof.
  intros points j. unfold count. rewrite <- INR_IZR_INZ.
  induction points as [|x rest IH]; [reflexivity|]. simpl. rewrite sum_map. simpl. rewrite IH.
  destruct (x <=? j)%nat; simpl length; rewrite ?S_INR; lra.
Qed.

(* Theorem W3, given the n + 1 points of which each is new with the same probability. *)
Theorem coverage_of_the_last_rule : forall c points T noises, 0 <= c -> Forall (noise_of_price c) noises ->
  points <> [] -> (forall x, In x points -> (x <= length noises)%nat) -> (T <= Z.of_nat (length points))%Z ->
  (IZR T - c) / INR (length points) <= coverage points T noises.
Proof.
  intros c points T noises Hc H Hpoints Hbins HT. pose proof (noises_are_laws c noises H) as L.
  set (a := fun j => (count points j - T)%Z). set (N := INR (length points)).
  assert (0 < / N) as HN by (apply Rinv_0_lt_compat, lt_0_INR; destruct points; [congruence|simpl; lia]).
  assert (- c <= mean (independent noises) (fun w => IZR (a (last_rule a 0 w)))) as Price.
  { apply price_of_the_last_rule; auto.
    - intros j. pose proof (count_rises points j). unfold a. lia.
    - unfold a. rewrite count_all by exact Hbins. lia. }
  apply Rle_trans with (mean (independent noises) (fun w => / N * (IZR (a (last_rule a 0 w)) + IZR T * 1))).
  - rewrite mean_scale, mean_plus, mean_scale. destruct L as [_ ->]. unfold Rdiv. rewrite Rmult_comm.
    apply Rmult_le_compat_l; lra.
  - apply mean_le; [exact L|]. intros o _. set (j := last_rule a 0 (fst o)).
    replace (IZR (a j) + IZR T * 1) with (IZR (count points j)) by (unfold a; rewrite minus_IZR; ring).
    rewrite <- new_at_or_below, <- sum_scale. unfold mean, one_is_new. rewrite sum_map. fold N.
    apply sum_le. intros s Hs. cbn [fst snd]. apply Rmult_le_compat_l; [lra|].
    assert (j <= threshold (snd s) T (fst o))%nat as Hj.
    { apply last_rule_falls. intros k. pose proof (count_of_the_others points s k Hs). unfold a. lia. }
    destruct (Nat.leb_spec (fst s) j), (Nat.leb_spec (fst s) (threshold (snd s) T (fst o))); lra || lia.
Qed.
