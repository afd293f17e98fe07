"""Claims of other programs of an operator."""

from claim import Claim

ALGEBRA = [
    Claim(
        name="algebra_find",
        title="Algebra: which forms are found",
        here=("Operators of `tools/std/algebra.prn`, two convolutions and attention over 16,384 keys, each derived with all rules on one "
              "thread: how many times fewer operations its form with the fewest has (of attention, its form in tiles, which saves memory "
              "instead), in how many seconds. `relu_between` to `saturated_between` have a function, a narrow store, a position or a saturation "
              "between, and nothing may be found there."),
        bench="algebra",
        group="find",
        rows=r"gain/|found|derive_",
        published=("Mirage (OSDI'25) reports 11 to 28 s with all threads for RMSNorm and a linear layer of 5 to 11 operators on its own "
                   "machine; it searches launches and memory as well, which is left to schedules here."),
        unfair=(
            "Operators were written with their form in mind, four of them so badly that any order is better.",
            "Convolutions by Winograd are of class `loose`: they err more than the operator, by what stands around an element.",
        ),
    ),
    Claim(
        name="algebra_prune",
        title="Algebra: what the filter of the bank spares",
        here=("RMSNorm and a linear layer searched from the inputs up to so many operations on one thread, with and without the filter by "
              "abstract expressions: terms tried, turned down, evaluated and kept. Without it a search ends after 15 s or at 2 GB, "
              "and what stands there is a lower limit (`censored`)."),
        bench="algebra",
        group="prune",
        arguments="--prune-seconds 15",
        rows=r"prune/",
        published=("Mirage (OSDI'25, table 5, RMSNorm): 11 s with all threads and 58 s with one at 5 operators, 768 s without its abstraction; at 7 "
                   "operators 22 s, 150 s and more than 10 h. It searches kernels, blocks and threads at once, so its graphs are other ones."),
        unfair=("One program, the one that was published; larger banks may be slower elsewhere.",),
    ),
    Claim(
        name="algebra_bound",
        title="Algebra: what its judge lets through",
        here=("Derived forms at small extents with one random fault each (lost scales, terms and guards, swapped operands, other operators, "
              "constants and subscripts), wrong by the interpreter: how many are taken for equal. The rate of single tests at small primes "
              "stands beside the bound that the verdict prints, and right forms are checked with fresh seeds."),
        bench="algebra",
        group="bound",
        rows=r"mutants|false_accepts|above_bound|right_",
        published=("Mirage tests once, with p = 167 and q = 83, on inputs that repeat; `mutants_accepted_167` is one test at that prime with "
                   "random inputs and this verifier, so no measure of Mirage itself."),
        unfair=(
            "Faults are random, one at a time; nobody tried to fool the verifier on purpose.",
            "A fault that moves no element of two fills by a hundredth of itself is not counted as one.",
        ),
    ),
    Claim(
        name="algebra_speed",
        title="Algebra: what its forms gain",
        here=("The operator as written and its form with the lowest limit, each tuned with 64 trials, then timed in turns, 31 samples of "
              "2 ms: median of one over the other, ranges from the tenth to the ninetieth of a hundred."),
        bench="algebra",
        group="speed",
        rows=r"speed/",
        published=("Mirage (OSDI'25, A100 and H100): grouped attention up to 2.2, normalised queries and keys up to 1.4, RMSNorm with a linear "
                   "layer 1.5 to 1.9, LoRA 1.1 to 2.4, gated MLP 1.5 to 3.3. Most of that is launches and trips to memory that a CPU does not make."),
        unfair=(
            "The rival is our own compiler on the program as written; who writes the product in the right order gains nothing.",
            "One seed; 64 trials for each of the two, so a form costs as many trials again.",
            ("Limits in the notes are estimates that rank forms (`search/algebra/roofline.h`), no bounds: parameters count as read from memory, "
             "and times from a cache are below them."),
        ),
    ),
    Claim(
        name="algebra_peers",
        title="Algebra beside inference engines",
        here=("The operators of `algebra_speed`, and causal attention, tuned with `--algebra auto`, beside whoever else runs them, as in "
              "`cpu_suite`. Engines get the graph in the definition's order and in the one that a user would write who knows algebra, "
              "`X@A@B` for a merged LoRA; the fastest counts. The loops and PyTorch have the latter alone. Long attention, "
              "convolutions (`cpu_suite` has such) and grouped decode over 65,536 keys were not run, for want of time."),
        bench="cpu",
        rows=r"(geomean/)?algebra/",
        arguments="--suite algebra --threads 1 --trials 64 --rounds 5",
        unfair=(
            ("The operators were chosen for our algebra: most of them have a form that it finds, and engines change no order of products by "
             "themselves. Where both have the best order, a ratio is one of kernels."),
            ("Weights of the gated MLP and of the convolutions are known to the engines beforehand; elsewhere they are inputs, so that nobody may "
             "pack them or multiply them ahead, as an engine would with a LoRA's."),
            ("Our kernels are tuned for exactly these shapes, with one seed; a derived program has as many trials as the operator. What a call "
             "costs in Python is in the engines' times and counts where an operator takes microseconds (`cpu_suite`)."),
            "Programs of class `loose` are not tuned, so convolutions run as written. `-O1` runs every operator as written.",
        ),
    ),
    Claim(
        name="algebra_networks",
        title="Algebra: what it does to networks' operators",
        here=("The operators of `tools/std/nets/resnet50.prn` and `tools/std/nets/bert_base.prn`, tuned with `--algebra auto` and without, 64 trials "
              "for each program, so that `auto` spends twice as many or more, then timed in turns as above: the median of five seeds. "
              "Operators for which nothing is derived are searched as ever: they count as 1 in the mean and have no row."),
        bench="algebra",
        group="networks",
        rows=r"auto(_geomean)?/",
        published=("Mirage (OSDI'25): whole networks 0.9 to 1.9 times as fast as PyTorch's own kernels on an A100."),
        unfair=("Operators as engines fuse them: what a person would have written worse is not among them.",),
    ),
]
