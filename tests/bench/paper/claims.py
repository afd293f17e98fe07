"""The claims that are measured again: what the paper says, what is measured here, and which rows say it."""

import os
import re
from dataclasses import dataclass

PRUNER = "Pruner, ASPLOS'25, arXiv 2402.02361"
TRANSFER = "Verma et al., arXiv 2304.05430"


@dataclass(frozen=True)
class Claim:
    name: str  # of NAME.sh here, and of ../results/NAME.json
    title: str
    paper: str
    here: str
    bench: str  # ./dev bench BENCH
    group: str  # --only GROUP
    rows: str  # pattern of the names of the rows that belong to it

    def has(self, row_name):
        return re.match(self.rows, row_name) is not None


CLAIMS = [
    Claim(
        "draft_throughput",
        "How fast candidates are drafted",
        f"The draft takes load off the learned model: 512 candidates a round instead of 8,000 ({PRUNER}, around Table 7). "
        "Nothing is said of candidates per second.",
        "Distinct candidates drawn or bred, checked, scored and offered to the best 512, per CPU second of one thread; "
        "beside them a program built for each candidate.",
        "draft",
        "rate",
        r"draft_per_s/|derive_ms/|draft_50000_s/|programs_per_s/",
    ),
    Claim(
        "draft_quality",
        "How good the draft is",
        "TenSet's T4 programs, 4,000 a subgraph, 512 drafted: Best-1 0.995; 0.880 without the penalties of compute, 0.930 "
        f"without those of memory ({PRUNER}, Table 10).",
        "The same on pools measured on the CPU, by operator class, for 64 to 512 drafted, with the published analyzers and "
        "chance beside ours; the published analyzers with each penalty left out.",
        "draft",
        "quality",
        r"best\d+_at_\d+|space_quality/",
    ),
    Claim(
        "ablation",
        "What the parts of the search are worth",
        f"Without the draft, both search time and final latency rise, offline too ({PRUNER}, Tables 12 and 13).",
        "The default strategy with one thing changed, by replay on every pool: how far the best so far is from the pool's "
        "best, mean over trials.",
        "draft",
        "ablation",
        r"regret/",
    ),
    Claim(
        "search_vs_ansor",
        "Search beside Ansor's, replayed",
        f"2.6 times less search time than Ansor's final latency takes, mean of three GPUs ({PRUNER}, abstract).",
        "The whole budget of `ansor` in trials and recorded seconds over what our search with boosted trees needs to be as fast as "
        "`ansor` is at its end; median over seeds; a search that never gets there counts as 1 at most. `_own`: over what `ansor` "
        "itself had spent when it first was that fast.",
        "draft",
        "replay",
        r"trials_to_ansor(_own|_near)?/[^/]+$|time_to_ansor(_own|_near)?/[^/]+$|ansor_final/|pruner_final/|overhead_fraction/",
    ),
    Claim(
        "search_live",
        "Search beside Ansor's, by the wall clock",
        f"At 2,000 trials each, 84.1 % of Ansor's whole compile time ({PRUNER}, Table 7).",
        "As by replay, live on two operators, medians over three seeds, with the seconds of each phase.",
        "draft",
        "live",
        r"live_(trials_to_ansor|time_to_ansor|(trials|time)_to_ansor_(own|near)|final|overhead_fraction|unhidden_fraction)/(?!resnet50)",
    ),
    Claim(
        "resnet50",
        "ResNet-50 beside Ansor, by the wall clock",
        "ResNet-50 of batch 1 on an A100: Ansor's final latency after 1,930 s instead of 6,691 s, 3.47 times less (logs of "
        f"the release of {PRUNER}).",
        "The 27 distinct subgraphs of ResNet-50 of batch 1 on the CPU, two threads, one seed, the gradient task scheduler.",
        "draft",
        "net",
        r"live_(trials_to_ansor|time_to_ansor|(trials|time)_to_ansor_(own|near)|final|overhead_fraction|unhidden_fraction)/resnet50",
    ),
    Claim(
        "seconds_to_tvm",
        "Seconds to what the real Ansor reached",
        "None: the paper's baselines are its own runs of TVM on GPUs. The figures to reach are of one run each of TVM 0.9's "
        "Ansor on this class of machine, 256 trials, two threads.",
        "Seconds until `pruner` reaches the fraction of the multiply-add limit that TVM's Ansor ended with; the goal is a "
        "fifth of Ansor's seconds.",
        "draft",
        "tvm",
        r"seconds_to_tvm_ansor/|fraction_of_limit/",
    ),
    Claim(
        "o1",
        "Answers without measuring",
        "No such mode. The draft's share shows after one round a task: ResNet-50 on an A100 is at 2.26 ms instead of 3.07 ms "
        f"after 270 trials (logs of the release of {PRUNER}).",
        "Latency of what `-O1` chooses without measuring, over that of the tuned kernel, in turns on one thread.",
        "draft",
        "o1",
        r"o1_ratio/|o1_good$",
    ),
    Claim(
        "model_accuracy",
        "Learned models on operators that they have not seen",
        "Top-1 / Top-5 on TenSet: T4 PaCM 0.892 / 0.962, TenSetMLP 0.859 / 0.941, TLP 0.862 / 0.935; K80 PaCM 0.897 / 0.969, "
        f"TenSetMLP 0.878 / 0.958, TLP 0.880 / 0.947 ({PRUNER}, Table 11). PaCM needs less data (Fig. 15).",
        "Top-1, Top-5 and pairwise accuracy of six models on held-out tasks of CPU pools, several seeds, at several volumes "
        "of data; differences to ours paired over tasks and seeds.",
        "costmodel",
        "accuracy",
        r"(top1|top5|top1_of_sums|top5_of_sums|pairwise)/[^/@]+(@\d+%)?$|(top1|pairwise)/pacm_less_|corpus_rows$",
    ),
    Claim(
        "model_speed",
        "What the learned model costs",
        "No time of a prediction or an update is given; peak GPU memory of the model 1,694 MB, of TenSetMLP 1,546 MB, of TLP "
        f"4,812 MB ({PRUNER}).",
        "Milliseconds of 512 candidates with their features, and seconds of an online update with 2,000 records, on two "
        "threads.",
        "costmodel",
        "speed",
        r"infer_512_ms$|features_512_ms$|update_2000_s$",
    ),
    Claim(
        "data_pruning",
        "How much training data can go",
        f"Up to 45 % of the data removed at no loss of pairwise accuracy ({TRANSFER}).",
        "Pairwise and Top-1 accuracy on held-out tasks after pruning by chance, by quantiles of the latency and by operator "
        "class.",
        "costmodel",
        "prune",
        r"pairwise_pruned/|top1_pruned/|pruned_fraction$",
    ),
    Claim(
        "transfer",
        "From one platform to another",
        f"Momentum adaptation of a K80 checkpoint: 4.82 times less search time than Ansor ({PRUNER}, abstract). Hardware "
        f"features: 25 to 40 % of the baseline's tuning time on hardware not seen before ({TRANSFER}).",
        "A model of one instruction set meets another, and operators that it never saw: replayed searches by trials, and "
        "accuracy on the rows that have not arrived yet by records of each task that have; AVX2 to AVX-512 and back.",
        "costmodel",
        "transfer",
        r"(top1|pairwise|tuned)/.+_to_.+@\d+$",
    ),
    Claim(
        "end_to_end",
        "Search with the learned models",
        "Times less search time to the baseline's final latency: online 2.6 beside Ansor, 4.82 with momentum adaptation; "
        f"offline 4.75 beside TenSetMLP and 4.05 beside TLP ({PRUNER}, abstract).",
        "The same for `pruner`, `moa-pruner` and `pruner-offline`, with the published forms and boosted trees beside them, by "
        "replay on the CPU with several seeds; checkpoints know other operators, those of momentum adaptation other machines "
        "as well. Final latencies.",
        "costmodel",
        "tuning",
        r"(speedup|speedup_own|speedup_near|trials|trials_own|trials_near|final|final_latency|overhead)/",
    ),
]


def sources_of(claim, files, prefer_own):
    """The files that have rows of the claim; its own file alone where it is among them."""
    have = [path for path, read in files.items() if read.bench == claim.bench and any(map(claim.has, read.rows))]
    own = [path for path in have if os.path.basename(path) == claim.name + ".json"]
    return own if own and prefer_own else have
