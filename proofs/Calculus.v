(* The Riemann integral of a continuous function, and a comparison of two integrals by their derivatives. *)

From Coq Require Import Reals Lra.
Open Scope R_scope.

(* The Riemann integral of a continuous function over [0, 1]. *)
Definition integral (f : R -> R) (C : continuity f) : R :=
  RiemannInt (continuity_implies_RiemannInt Rle_0_1 (fun x _ => C x)).

(* F is a primitive of f on [0, 1] that begins at 0. *)
Definition primitive_of (F f : R -> R) : Prop :=
  F 0 = 0 /\ forall x, 0 <= x <= 1 -> derivable_pt_lim F x (f x).

Lemma integral_is_primitive : forall f C, exists F, primitive_of F f /\ F 1 = integral f C.
Proof.
  intros f C.
  set (C0 := fun x (_ : 0 <= x <= 1) => C x).
  exists (primitive Rle_0_1 (FTC_P1 Rle_0_1 C0)). split; [split|].
  - unfold primitive. destruct (Rle_dec 0 0) as [r|]; [|lra].
    destruct (Rle_dec 0 1) as [r0|]; [|lra]. apply RiemannInt_P9.
  - intros x Hx. now apply RiemannInt_P28.
  - unfold primitive, integral. destruct (Rle_dec 0 1) as [r|]; [|lra].
    destruct (Rle_dec 1 1) as [r0|]; [|lra]. apply RiemannInt_P5.
Qed.

(* If F never grows faster than G, its increase is at most that of G. *)
Lemma compare : forall F G f g a b, a <= b ->
  (forall x, a <= x <= b -> derivable_pt_lim F x (f x)) ->
  (forall x, a <= x <= b -> derivable_pt_lim G x (g x)) ->
  (forall x, a <= x <= b -> f x <= g x) ->
  F b - F a <= G b - G a.
Proof.
  intros F G f g a b [Hab| ->] HF HG H; [|lra].
  destruct (MVT_cor2 (G - F)%F (fun x => g x - f x) a b Hab) as (c & E & Hc).
  - intros. apply derivable_pt_lim_minus; auto.
  - unfold minus_fct in E. assert (f c <= g c) by (apply H; lra).
    assert (0 <= (g c - f c) * (b - a)) by (apply Rmult_le_pos; lra). lra.
Qed.

(* The derivative of x -> F (k x). *)
Lemma derivative_stretched : forall F f k x,
  derivable_pt_lim F (k * x) (f (k * x)) -> derivable_pt_lim (fun y => F (k * y)) x (k * f (k * x)).
Proof.
  intros F f k x H.
  rewrite (Rmult_comm k (f (k * x))).
  apply (derivable_pt_lim_comp (fun y => k * y) F x k); [|exact H].
  assert (derivable_pt_lim (mult_real_fct k id) x (k * 1)) as D by apply derivable_pt_lim_scal, derivable_pt_lim_id.
  rewrite Rmult_1_r in D. exact D.
Qed.

Lemma derivative_scaled : forall F f k x,
  derivable_pt_lim F x (f x) -> derivable_pt_lim (fun y => k * F y) x (k * f x).
Proof. intros. now apply (derivable_pt_lim_scal F k x (f x)). Qed.

Lemma derivative_line : forall k x, derivable_pt_lim (fun s => 1 - s * k) x (- k).
Proof.
  intros. replace (- k) with (0 - (1 * k + x * 0)) by ring.
  apply (derivable_pt_lim_minus (fct_cte 1) (id * fct_cte k)%F).
  - apply derivable_pt_lim_const.
  - apply (derivable_pt_lim_mult id (fct_cte k) x 1 0).
    + apply derivable_pt_lim_id.
    + apply derivable_pt_lim_const.
Qed.

Lemma continuity_line : forall k, continuity (fun s => 1 - s * k).
Proof.
  intros k. apply derivable_continuous. intro x. exists (- k). apply derivative_line.
Qed.
