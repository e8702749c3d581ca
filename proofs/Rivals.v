(* The probability that competing candidates beat one candidate: the core of Theorem C1, for each selector.

   Some bad candidates i have utilities at most v + ln(a_i p) against one candidate g of utility v, where 0 <= a_i <= 1
   and the a_i sum up to at most G. Then one of the bad candidates is drawn with probability at most tail. *)

From Coq Require Import Reals List Lra Lia Arith.
From Confide Require Import Sums Calculus Selectors.
Import ListNotations.
Open Scope R_scope.

(* tail, as a function of p = exp(-l d). *)
Definition exponential_tail (G p : R) : R := G * p / (1 + G * p).

Definition permute_and_flip_tail (G p : R) : R := 1 - (1 - Rpower (1 - p) (G + 1)) / ((G + 1) * p).

Definition tail_of (s : selector) : R -> R -> R :=
  match s with Exponential => exponential_tail | PermuteAndFlip => permute_and_flip_tail end.

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

(* Weighted means: y^a <= a y + 1 - a, Bernoulli's inequality for exponents in [0, 1]. *)
Lemma ln_below_line : forall z, 0 < z -> ln z <= z - 1.
Proof. intros z Hz. pose proof (exp_ineq1_le (ln z)) as H. rewrite exp_ln in H; lra. Qed.

Lemma power_below_line : forall y b, 0 < y -> 0 <= b <= 1 -> Rpower y b <= b * y + 1 - b.
Proof.
  intros y b Hy Hb. set (c := b * y + 1 - b).
  assert (0 < c).
  { unfold c. destruct (Req_dec b 0) as [->|]; [lra|]. assert (0 < b * y) by (apply Rmult_lt_0_compat; lra). lra. }
  assert (b * ln y <= ln c) as K.
  { pose proof (ln_below_line (y * / c)) as H1. pose proof (ln_below_line (/ c)) as H2.
    assert (0 < / c) by now apply Rinv_0_lt_compat.
    rewrite ln_mult in H1 by assumption. rewrite ln_Rinv in * by assumption.
    assert (0 < y * / c) by now apply Rmult_lt_0_compat. specialize (H1 H3). specialize (H2 H0).
    assert (b * (ln y + - ln c) <= b * (y * / c - 1)) by (apply Rmult_le_compat_l; lra).
    assert ((1 - b) * (- ln c) <= (1 - b) * (/ c - 1)) by (apply Rmult_le_compat_l; lra).
    assert (b * (y * / c - 1) + (1 - b) * (/ c - 1) = 0) by (unfold c; field; fold c; lra). lra. }
  unfold Rpower. apply Rle_trans with (exp (ln c)); [now apply exp_le|]. rewrite exp_ln; lra.
Qed.

(* The competitor's integrand (1 - y p)^G, its primitive, and its monotonicity. *)
Definition beta (y : R) : R := Rpower (1 - y * p) G.
Definition beta_primitive (y : R) : R := / ((G + 1) * p) + - / ((G + 1) * p) * Rpower (1 - y * p) (G + 1).

Lemma line_positive : forall y, 0 <= y <= 1 -> 0 < 1 - y * p <= 1.
Proof.
  intros y Hy. assert (0 <= y * p) by (apply Rmult_le_pos; lra).
  assert (y * p <= 1 * p) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma beta_primitive_derivative : forall y, 0 <= y <= 1 -> derivable_pt_lim beta_primitive y (beta y).
Proof.
  intros y Hy. pose proof (line_positive y Hy). pose proof G_nonneg.
  assert (derivable_pt_lim (fun z => Rpower z (G + 1)) (1 - y * p) ((G + 1) * Rpower (1 - y * p) (G + 1 - 1))) as D1
    by (apply derivable_pt_lim_power; lra).
  pose proof (derivable_pt_lim_comp (fun z => 1 - z * p) (fun z => Rpower z (G + 1)) y _ _
                (derivative_line p y) D1) as D2.
  pose proof (derivable_pt_lim_scal _ (- / ((G + 1) * p)) y _ D2) as D3.
  pose proof (derivable_pt_lim_plus (fct_cte (/ ((G + 1) * p))) _ y _ _ (derivable_pt_lim_const _ y) D3) as D4.
  replace (beta y) with (0 + - / ((G + 1) * p) * ((G + 1) * Rpower (1 - y * p) (G + 1 - 1) * - p)); [exact D4|].
  unfold beta. replace (G + 1 - 1) with G by ring. field. lra.
Qed.

Lemma beta_falls : forall y z, 0 <= y <= z -> z <= 1 -> beta z <= beta y.
Proof.
  intros y z Hy Hz. pose proof (line_positive z ltac:(lra)). pose proof G_nonneg.
  unfold beta. apply Rle_Rpower_l; [assumption|]. split; [lra|].
  assert (y * p <= z * p) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(* All bad candidates are silent at s at least as likely as beta says, s in units of the competitor's weight. *)
Lemma silent_above_power : forall l x, (forall i, In i l -> In i bad) -> 0 < x <= 1 ->
  Rpower x (sum l a) <= product l (fun i => a i * x + 1 - a i).
Proof.
  induction l as [|b l IH]; intros x Hl Hx; simpl; [rewrite Rpower_O; lra|].
  rewrite Rpower_plus. apply Rmult_le_compat.
  - apply Rlt_le, exp_pos.
  - apply Rlt_le, exp_pos.
  - apply power_below_line; [lra|apply shares, Hl; now left].
  - apply IH; [|exact Hx]. intros; apply Hl; now right.
Qed.

Let w := weight m u.

Lemma bad_weights : forall i, In i bad -> w i <= a i * p * w g.
Proof.
  intros i Hi. specialize (bad_are_lighter i Hi). unfold w, weight, Rminus. rewrite !exp_plus.
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rlt_le, exp_pos|exact bad_are_lighter].
Qed.

Lemma silent_above_beta : forall s, 0 <= s <= 1 -> beta (w g * s) <= silent bad w s.
Proof.
  intros s Hs. unfold beta.
  assert (0 < w g) by apply weight_pos. assert (w g <= 1) by now apply weight_at_most_one.
  assert (0 <= w g * s <= 1) as Hy.
  { split; [apply Rmult_le_pos; lra|]. assert (w g * s <= 1 * 1) by (apply Rmult_le_compat; lra). lra. }
  pose proof (line_positive (w g * s) Hy) as Hx.
  apply Rle_trans with (Rpower (1 - w g * s * p) (sum bad a)).
  - unfold Rpower. apply exp_le.
    assert (ln (1 - w g * s * p) <= 0) by (pose proof (ln_below_line (1 - w g * s * p)); lra).
    assert (0 <= (G - sum bad a) * (- ln (1 - w g * s * p))) by (apply Rmult_le_pos; lra). lra.
  - eapply Rle_trans; [apply silent_above_power; auto|]. apply product_le. intros i Hi.
    destruct (shares i Hi). pose proof (bad_weights i Hi).
    replace (a i * (1 - w g * s * p) + 1 - a i) with (1 - s * (a i * p * w g)) by ring.
    split.
    + assert (0 <= w g * s * p <= 1) by lra.
      assert (a i * (w g * s * p) <= 1 * 1) by (apply Rmult_le_compat; lra). lra.
    + assert (s * w i <= s * (a i * p * w g)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem permute_and_flip_rivals : sum bad (permute_and_flip m u) <= permute_and_flip_tail G p.
Proof.
  pose proof G_nonneg.
  assert (0 < w g) by apply weight_pos. assert (w g <= 1) by now apply weight_at_most_one.
  assert (forall i, In i (candidates m) -> 0 <= w i <= 1) as W by (intros; now apply weights_in_unit).
  assert (forall i, In i bad -> 0 <= w i <= 1) as WB by (intros; apply W, in_candidates; auto).
  destruct (permute_and_flip_primitive m u bad) as (S & (S0 & SD) & S1). fold w in SD.
  set (B := silent bad w).
  set (b := fun x => - sum bad (fun j => w j * silent (without j bad) w x)).
  assert (forall x, derivable_pt_lim B x (b x)) as BD by (intros; now apply silent_derivative).
  destruct (integral_is_primitive B (silent_continuous bad w)) as (Z & (Z0 & ZD) & _).
  (* The clock of a bad candidate rings first, against g alone: integrated by parts. *)
  assert (forall x, derivable_pt_lim (fun s => (1 - s * w g) * B s) x (- w g * B x + (1 - x * w g) * b x)) as PD.
  { intros x. apply (derivable_pt_lim_mult (fun s => 1 - s * w g) B); [apply derivative_line|apply BD]. }
  assert (S 1 - S 0 <= (- w g * Z 1 + (-1) * ((1 - 1 * w g) * B 1)) -
                       (- w g * Z 0 + (-1) * ((1 - 0 * w g) * B 0))) as Parts.
  { apply (compare S (fun s => - w g * Z s + (-1) * ((1 - s * w g) * B s))
             (fun x => sum bad (fun j => w j * silent (without j (candidates m)) w x))
             (fun x => - w g * B x + (-1) * (- w g * B x + (1 - x * w g) * b x)) 0 1); [lra|exact SD| |].
    - intros x Hx. apply (derivable_pt_lim_plus (fun s => - w g * Z s) (fun s => (-1) * ((1 - s * w g) * B s))).
      + apply derivative_scaled. auto.
      + apply (derivative_scaled (fun s => (1 - s * w g) * B s) (fun x => - w g * B x + (1 - x * w g) * b x)). apply PD.
    - intros x Hx.
      replace (- w g * B x + -1 * (- w g * B x + (1 - x * w g) * b x))
        with ((1 - x * w g) * sum bad (fun j => w j * silent (without j bad) w x)) by (unfold b; ring).
      rewrite <- sum_scale. apply sum_le. intros j Hj.
      replace ((1 - x * w g) * (w j * silent (without j bad) w x))
        with (w j * silent (g :: without j bad) w x) by (unfold silent; simpl; ring).
      apply Rmult_le_compat_l; [apply WB, Hj|]. unfold silent. apply product_incl.
      + constructor; [rewrite in_without; tauto|]. unfold without. now apply NoDup_filter.
      + intros i Hi. apply in_without. rewrite in_candidates. destruct Hi as [<-|Hi].
        * split; [exact g_is_a_candidate|]. intros ->. contradiction.
        * apply in_without in Hi. split; [apply bad_are_candidates|]; tauto.
      + intros i Hi. apply in_without in Hi. apply (silent_in_unit (candidates m)); tauto. }
  assert (B 0 = 1) as B0.
  { unfold B, silent. clear. induction bad as [|c l IH]; simpl; [reflexivity|]. rewrite IH. ring. }
  (* The competitor wins before the weight of g is used up ... *)
  assert (beta_primitive (w g * 1) - beta_primitive (w g * 0) <= w g * Z 1 - w g * Z 0) as Early.
  { apply (compare (fun s => beta_primitive (w g * s)) (fun s => w g * Z s) (fun s => w g * beta (w g * s))
             (fun s => w g * B s) 0 1); [lra| | |].
    - intros x Hx. apply derivative_stretched. apply beta_primitive_derivative. split; [apply Rmult_le_pos; lra|].
      assert (w g * x <= 1 * 1) by (apply Rmult_le_compat; lra). lra.
    - intros x Hx. apply derivative_scaled. auto.
    - intros x Hx. apply Rmult_le_compat_l; [lra|]. now apply silent_above_beta. }
  (* ... or afterwards, where beta only falls. *)
  assert (beta_primitive 1 - beta_primitive (w g) <= beta (w g) * 1 - beta (w g) * w g) as Late.
  { apply (compare beta_primitive (fun s => beta (w g) * s) beta (fun _ => beta (w g)) (w g) 1); [lra| | |].
    - intros. apply beta_primitive_derivative. lra.
    - intros x Hx. pose proof (derivative_scaled id (fun _ => 1) (beta (w g)) x (derivable_pt_lim_id x)) as D.
      rewrite Rmult_1_r in D. exact D.
    - intros. apply beta_falls; lra. }
  pose proof (silent_above_beta 1 ltac:(lra)) as B1. fold B in B1. rewrite Rmult_1_r in *.
  assert ((1 - w g) * beta (w g) <= (1 - w g) * B 1) by (apply Rmult_le_compat_l; lra).
  assert (beta_primitive 0 = 0) as P0.
  { unfold beta_primitive. rewrite Rmult_0_l, Rminus_0_r.
    replace (Rpower 1 (G + 1)) with 1; [field; lra|]. unfold Rpower. rewrite ln_1, Rmult_0_r, exp_0. reflexivity. }
  replace (permute_and_flip_tail G p) with (1 - beta_primitive 1).
  - rewrite <- S1. rewrite Rmult_0_r, P0 in Early. rewrite B0, Z0, S0 in *. lra.
  - unfold permute_and_flip_tail, beta_primitive. rewrite Rmult_1_l. field. lra.
Qed.

End Rivals.
