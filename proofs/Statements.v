(* Prints the proved theorems and their axioms: those of Coq's standard library for real numbers, and no
   others. tests/proofs/test_rocq.py reads the output of this file. *)

From Coq Require Import Reals.
From Confide Require Import Sums Selectors RangeDistance Mechanism Privacy Rivals RisingWeights LastRule.

Check exponential_nonneg.              Print Assumptions exponential_nonneg.
Check exponential_sums_to_one.        Print Assumptions exponential_sums_to_one.
Check lemma_1.                        Print Assumptions lemma_1.
Check theorem_1a.                     Print Assumptions theorem_1a.
Check table.                          Print Assumptions table.
Check theorem_1b.                     Print Assumptions theorem_1b.
Check theorem_1b_without_head_start.  Print Assumptions theorem_1b_without_head_start.
Check theorem_1c.                     Print Assumptions theorem_1c.
Check loss_of_events.                 Print Assumptions loss_of_events.
Check theorem_2.                      Print Assumptions theorem_2.
Check rivals_at_most_all_others.      Print Assumptions rivals_at_most_all_others.
Check price_of_the_last_rule.         Print Assumptions price_of_the_last_rule.
Check coverage_of_the_last_rule.      Print Assumptions coverage_of_the_last_rule.
