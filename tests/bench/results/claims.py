"""What is measured, one entry for each results file. The page of tables, the plots and `./dev bench paper` are made from this list."""

from claim import Claim
from claims_algebra import ALGEBRA
from claims_models import MODELS

OLD_ANALYZER = ("Measured before 8d203754, in which the published analyzer began to count each statement's own operations: `pruner-paper`, "
                "`moa-pruner-paper`, `paper` and `release` may do better today.")
OWN_ANSOR = (
    "`ansor` is our implementation of its algorithm in this engine, with the same sketches, compiler and timer: not TVM, and no "
    "measure of TVM."
)

CLAIMS = [
    Claim(
        name="cpu-zen5-2core",
        title="Kernels beside OpenBLAS, oneDNN and Eigen",
        here=("Each operator is tuned, then our best kernel, each library that has the operator and the machine's limit are "
              "timed in turns, each in a process of its own; medians of three rounds. GFLOP/s, or GB/s of compulsory "
              "traffic for softmax and layer norm."),
        bench="cpu",
        arguments="--threads 1,2 --trials 100",
        unfair=(
            ("Our kernels are tuned for exactly these shapes; a library takes any. The libraries are those of Debian 12, "
             "not the newest, set up to be hard to beat: OpenBLAS told of AVX-512, oneDNN with packed weights, Eigen "
             "compiled for this machine."),
            "One run on a virtual machine, one search for each of our kernels: ranges are those of three rounds of timing, not of searches.",
        ),
    ),
    Claim(
        name="cpu_suite",
        title="Operators of all classes beside ONNX Runtime, OpenVINO and `gcc -O3`",
        here=("Each operator as users have it (channels-first, row-major), tuned, beside whoever else runs it, in turns, each by its own "
              "clock in a process that is stopped while others run; outputs compared with a float64 reference. Ratios are the best "
              "peer's time over ours in the same round, medians (least to most)."),
        bench="cpu",
        arguments="--suite all --trials 64 --rounds 5",
        others=(("cpu_suite-sapphirerapids-2core", "--suite all --trials 64 --rounds 5 --only 'i8|bf16'"),),
        unfair=(
            ("`cpu_suite-sapphirerapids-2core.json` has products of bytes and bf16 alone, on a CPU with AMX, whose unit other tenants of the machine share: "
             "the same kernel takes up to 2.5 times as long in one round as in another."),
            ("Our kernels are tuned for exactly these shapes. Engines know the weights beforehand and may bring them into their own "
             "layout; what a call of theirs costs in Python is in their times, and counts where an operator takes microseconds."),
            ("The limit counts the definition's operations: also multiply-adds that are masked away, as in a transposed convolution and "
             "in a cumulative sum, so that it can be beaten there."),
            ("`gcc`: plain loops with `-O3 -march=native` and leave to reorder sums (`-fassociative-math`), on two threads OpenMP around the "
             "outermost ones, no blocking."),
            ("One search for each of our kernels, with one seed: ranges are those of rounds of timing, not of searches. PyTorch is not installed by "
             "`./dev setup --peers` and so not among the peers. oneDNN is one of `--suite base` alone: in the layout that it chooses it is far ahead of "
             "ours on `dw_96x112_3x3s2` (`cpu-zen5-2core`), which stands here as ahead."),
        ),
    ),
    Claim(
        name="network",
        title="Whole networks beside ONNX Runtime and OpenVINO",
        here=("ONNX files as they are, f32, batch 1. Each is compiled with -O1, nothing is tuned; ours and each engine are timed in "
              "turns, each in a process of its own, by its own clock; a round is the median of its runs, and what stands here the "
              "median of the rounds with the least and the most. `ratio`: the better engine's time over ours."),
        bench="network",
        arguments="MODEL.onnx... --threads 2 --rounds 3 --o1",
        unfair=(
            ("What a call costs in Python is in the engines' times, and counts where a network takes microseconds; ours is timed "
             "without it."),
            ("Ours asks for huge pages for weights and intermediate values, the engines, as they come, do not: it counts where weights are many "
             "(`light_bvlc_alexnet`, `light_zfnet512`, `light_vgg19`)."),
            ("`common_old` quantises what its LSTM reads anew at each step, so that one rounding more or less in its input moves ONNX Runtime's own "
             "outputs by more than is allowed to ours."),
            ("These are all models that the ONNX project's package holds in full and that `ddddocr`, `rapidocr-onnxruntime` and `silero-vad` bring, "
             "but one in f16 and two whose branches want `--const`, which the benchmark does not give. Some had a row here before and were worked on."),
            "`light_*` are models of the ONNX project whose weights are all alike; the others are public models from PyPI.",
        ),
    ),
    Claim(
        name="tuned_network",
        title="Networks as PyTorch exports them, tuned",
        here=("As above, with networks that `tests/bench/network/models.py` exports with random weights, after `prunerc tune "
              "MODEL.onnx --time 5m` or less. Tasks are timed one by one with weights as far away as the network's make them, then "
              "ranked within it. The last column is the network over the sum of its tasks, which were timed on another occasion."),
        bench="network",
        arguments="MODEL.onnx... --threads 2 --rounds 5 --time 5m",
        unfair=(
            "Where the last column is empty, not every task of the network had a record: it ran in part by schedules that nobody measured.",
            "Ours is tuned for minutes beforehand, the engines are not.",
        ),
    ),
    Claim(
        name="quantised_network",
        title="Networks in 8 bits beside ONNX Runtime and OpenVINO",
        here=("As above, with -O1 and nothing tuned: networks that `tests/bench/network/quantise.py` makes of those above with ONNX Runtime's own "
              "quantiser. `_qdq` and `_qop` have weights and activations of 8 bits (as QuantizeLinear and DequantizeLinear around operators "
              "of floats, and as operators of whole numbers), `_dyn` quantises what goes into products as it comes. The last column: how our "
              "outputs compare with ONNX Runtime's."),
        bench="network",
        arguments="MODEL.onnx... --threads 2 --rounds 5 --o1",
        unfair=(
            ("One rounding may turn a quantised value by a step, and all behind it. `within`: no further off than four times what a rounding of "
             "each float input and constant changes, which is the percentage; `not verifiable`: that is more than a quarter of the largest value, "
             "so that nothing can be said (tools/DESIGN.md, 31)."),
            "Ranges come of noise and weights are random, so nothing is said of accuracy.",
            "OpenVINO does not read `_qop`: it has no QLinearConv.",
            "What a call costs in Python is in the engines' times. OpenVINO is asked for float32 where a model leaves it the choice.",
        ),
    ),
    Claim(
        name="gpu",
        title="On a GPU, beside cuBLAS, cuDNN and torch.compile",
        here=("Limits as measured, hand-written schedules and random members of the search space with their values checked on the "
              "device. Then candidates that the analyzer drafted elsewhere, knowing the device's limits and no time of a kernel, compiled there "
              "to libraries (`LIKE=tests/data/h100/gemm_f16_4096.pool tests/bench/gpu/pack.sh`): `-O1` is the one that it chooses without any measurement, `ours` the fastest of so many when each was timed once. "
              "`torch`: PyTorch's call for the same (cuBLAS, cuDNN and its attention, its own kernels); `compile`: torch.compile's in its default mode, "
              "where those are kernels of a compiler. Every time is the median of 50 runs by CUPTI, kernels only, all in one process, with the second "
              "level of the cache overwritten before each run; the sides in turns, three rounds."),
        arguments="--rounds 3 --only doctor,platform,silicon,export,hand,golden,programs,drafted",
        others=(("gpu-h100-tuned", "--rounds 2 --seconds 18 --o1 --only platform,golden,tune,beside --operators tiled_attention_f16_1024,"
                 "tiled_attention_f16_4096,tiled_attention_f16_4096x128,gemm_f16_1024,conv3x3_f16_14"),),
        bench="gpu",
        rows=r"(time|tuned|limit)/|golden_right$|programs_right$|drafted_right$",
        unfair=(
            "Kernels' own times: launches, which PyTorch makes several of in some rows, are not in them.",
            ("`torch.compile` was not asked for `max-autotune`, which measures its own candidates, and PyTorch's outputs are not compared with ours: "
             "the candidates of an operator are compared with each other, programs of the same sketches with the interpreter."),
            "The analyzer and kernels were changed after a look at such devices' times of these operators, so none is untouched.",
            ("`gpu-h100-tuned.json` has operators that were searched on the device itself for some seconds, by later code, each side in a process "
             "of its own: attention in tiles of 64 keys in one pass, which the first file does not have, and two that were behind there. "
             "The operators were chosen for that."),
            ("The clocks of the device are not fixed: where the fastest is the one that `-O1` chooses, as of `gemm_f16_4096` and `gemm_f16_8192`, both "
             "columns are of one kernel, and what they differ by is noise."),
            ("PyTorch's product of bytes (`torch._int_mm`) gets B as it lies, as ours does; libraries prefer it transposed, and this row lifts the mean: "
             "the median operator stands beside it. Its max pooling writes where the maxima stand as well."),
        ),
    ),
    Claim(
        name="rival",
        title="Searches beside TVM's and Optuna",
        here=("Twenty frozen operators that nobody had tuned before (`tests/data/frozen/search.prn`), one thread. Operator by operator and "
              "seed by seed each search runs in a process of its own, with both cores, then the winners are timed in turns by one clock, on "
              "equal inputs and checked against float64. `tvm`: MetaSchedule of TVM 0.27 in its own space; `ansor`: the last TVM on PyPI that "
              "has it, a vendor's 0.16; `optuna`: TPE on our space; `random`: chance on our space, after its heuristic schedules; "
              "`pruner-bare`: ours without these and without the built-in model. Ratios are its time over ours, round by round, at equal budgets of "
              "trials; seconds: those in which it first had its own end (`near`: within 1 % of it) over ours until as fast. Of a pair in which ours "
              "never gets there the ratio counts as 1 at most, so that the more there are of them (last column), the more the mean is an upper "
              "limit."),
        bench="rival",
        rows=r"(speed|ratio|seconds|geomean|reach_own|reach_near|geomean_reach_own|geomean_reach_near|startup)/",
        published=("2.6 times less search time than Ansor's final latency takes, mean of three GPUs (Pruner, ASPLOS'25, arXiv 2402.02361, "
                   "abstract)."),
        arguments="--trials 64 --seeds 5 --who pruner,tvm,optuna,random,pruner-bare",
        others=(("rival-ansor", "--trials 64 --seeds 1 --ops '^(gemm_|conv_nchw_3x3$)'"),
                ("rival-budgets", "--trials 256 --seeds 1 --who pruner,tvm,optuna,random --ops '^(gemm_|conv_)'"),
                ("rival-1000", "--trials 1000 --seeds 1 --who pruner,tvm,optuna,random --ops '^(gemm_square|reduce_rows)$'")),
        unfair=(
            ("TVM's searches have their stock settings, so 64 trials are one round: their cost models learn nothing that is used, and all "
             "times of a round are known at its end, so that their seconds, near or not, are those of the whole search. More trials, or "
             "`--round 16`, would favour them."),
            ("Seconds are whole processes. Importing TVM's modules is part of that (row `startup`), and would be spent once for several "
             "operators: `without importing` leaves it out on their side alone. Each search measures by its own rule: TVM's at "
             "least 0.1 s a trial, ours some milliseconds."),
            ("Five seeds. `rival-ansor.json` has Ansor, too, beside all others in the same turns: one seed, six operators, since 64 trials take it "
             "longer than all others together. "
             "`elementwise_bias_gelu`, `softmax_rows` and `reduce_columns` lift `tvm`'s mean; the median operator stands beside it. In the "
             "first `tvm` came to a single candidate; why it is so slow in the others was not looked into."),
            ("`rival-budgets.json` has 256 trials: one seed, the products and convolutions alone, on an Intel CPU whose speed changed by up to half between "
             "rounds, with short compilations of other work beside the searches. `rival-1000.json`, from the same machine, has 1,000 on two operators, since TVM may take "
             "more than ten minutes for one."),
            ("A budget is not always spent: `optuna` ends where a thousand draws in a row are refused, `tvm` where it finds no other candidate. "
             "Draws that are refused are told to TPE as slow. The last table has them."),
            ("`random` and `optuna` choose in our space of sketches and come as far as ours within some per cent: at 64 trials it is the "
             "space, not who searches it, that is ahead of `tvm`."),
            ("`tvm`'s builder is its own but for an import of tensor intrinsics that nothing here uses, at which every worker of every "
             "batch would spend 11 to 13 s; this favours it. Ansor's LLVM is 17 and takes the Zen 5 for a Zen 4."),
            ("Our built-in checkpoint was trained on operators of these kinds in other sizes, and the heuristic schedules are ours; "
             "`pruner-bare` has neither. A curve is brought to the common clock by its end."),
        ),
    ),
    Claim(
        name="searches",
        title="Searches with equal starts",
        here=("Every strategy by replay on eight pools of the CPU, batches of ten, 200 trials, 20 rounds. Heuristic schedules first: "
              "`ansor+heuristics`, `ansor+checkpoint`, the offline models and ours but `pruner-bare` and the published ones (`*-paper`). "
              "Trained beforehand, on all pools of other operators: `ansor+checkpoint` (Ansor's genetic algorithm on our network, learning on as ours does), "
              "`pruner`, the offline models; `moa-*` on other machines' pools alone. Own: what the baseline had spent when it first "
              "was as fast as at its end, over what ours needs; near: to within 1 % of that end; whole budget: as the paper counts, "
              "which flatters whoever is compared with a baseline that ended early. A search that never gets there counts as 1 at most, so that "
              "the more there are of them (last column), the more a mean is an upper limit."),
        bench="costmodel",
        group="tuning",
        rows=r"(speedup|trials)(_own|_near)?/|final/|curve(_s)?/|overhead/",
        published=("Times less search time to the baseline's final latency, of its whole budget: online 2.6 beside Ansor, 4.82 with "
                   "momentum adaptation; offline 4.75 beside TenSetMLP and 4.05 beside TLP (Pruner, ASPLOS'25, arXiv 2402.02361, "
                   "abstract)."),
        arguments="--seeds 5",
        unfair=(
            OWN_ANSOR,
            ("The pools are of one Zen 4 and are those by which defaults were chosen (the development set): ours had that advantage, "
             "the baselines have the published settings but for rounds of ten instead of 64 (costmodel/pruner/ORIGINAL.md)."),
            ("A pool has 2,000 candidates, so that any search ends near its best. Replayed seconds are those of building and measuring "
             "one after the other, and what the search takes on this machine; live searches build while they measure."),
            ("`ansor+checkpoint` is the rival to look at: Ansor's genetic algorithm on our network. Where `pruner` stands below 1 beside it, "
             "what gains on these pools is the network and not the draft, which then saves no more than the time of searching itself (last "
             "table)."),
            OLD_ANALYZER,
            ("`moa-pruner` (other machines' pools, momentum) is behind `pruner` in own seconds beside five of seven baselines, and `pruner-offline`, "
             "which learns nothing, is ahead of it beside `ansor+checkpoint`: on these pools neither momentum nor learning on gains. "
             "`metaschedule` ranks by chance for its first 100 trials, half of the budget, as published."),
            "`tlp` was trained on 20,000 drawn rows, the other offline models on all.",
            "Of the even numbers of searches behind curves and shares the median is here the larger of the two in the middle, later their mean.",
        ),
    ),
    Claim(
        name="resnet50",
        title="ResNet-50 beside `ansor`, by the wall clock",
        here=("The 27 distinct subgraphs of ResNet-50 of batch 1 on the CPU, two threads, the gradient task scheduler, 2,700 trials: ten "
              "rounds of ten for each. Heuristic schedules first for all; `pruner-untrained` and `ansor` begin untrained, `pruner` and "
              "`ansor+checkpoint` (Ansor's genetic algorithm on our network) with the built-in model. Own, near, whole budget: as above."),
        bench="draft",
        group="net",
        rows=r"net_(time|trials)(_own|_near)?/|net_(final|wall|overhead|unhidden)/",
        published=("ResNet-50 of batch 1 on an A100: Ansor's final latency after 1,930 s instead of 6,691 s, 3.47 times less "
                   "(logs of the release of Pruner, ASPLOS'25, arXiv 2402.02361); at 2,000 trials each, 84.1 % of Ansor's whole compile "
                   "time (Table 7)."),
        unfair=(
            OWN_ANSOR,
            ("`ansor` has rounds of ten instead of 64, and trees for each task, where TVM's shares one model among all of them, as the tasks "
             "share `pruner`'s network (costmodel/pruner/ORIGINAL.md). Ends are each search's own times, of whole searches one after the "
             "other; no clock timed the winners in turns. Ours asks for a round while the one before is measured, `ansor` as published does not."),
            "The built-in model's training data has one of the 27, the mean over 7 x 7 pixels (`reduce_global_35`), and operators like the others.",
            "One seed. `pruner` begins with a model where `ansor` has none; equal starts stand beside it: `ansor+checkpoint` has that model, "
            "`pruner-untrained` has none. Most of `ansor`'s seconds are its own exploring on two slow cores; trials tell what it chose. While it "
            "ran, other work had some of the CPUs' time at idle priority.",
        ),
    ),
    Claim(
        name="o1",
        title="Answers without measuring, and after few trials",
        here=("The twenty frozen operators (`tests/data/frozen/search.prn`), tuned with 640 trials; beside them those of ResNet-50, "
              "MobileNet-V2 and BERT-base (`tools/std/nets`), with 128. One thread, one search each; `-O1`'s kernel, that of a search of 8 trials and the tuned "
              "one in turns. After 64 trials: of the long search's own end, by its own times."),
        bench="draft",
        group="o1",
        others=tuple((f"o1-{net}", f"--o1-operators tools/std/nets/{net}.prn --o1-trials 128") for net in ("resnet50", "mobilenet_v2", "bert_base")),
        rows=r"o1_speed/|first\d+/|geomean/(o1_speed|first\d+)",
        published=("No such mode. The draft's share shows after one round a task: ResNet-50 on an A100 is at 2.26 ms instead of "
                   "3.07 ms after 270 trials (logs of the release of Pruner, ASPLOS'25, arXiv 2402.02361)."),
        unfair=(
            "\"Tuned\" is ours: a search with other sketches may find faster kernels, and what 8 trials reach is measured against it. One seed.",
            ("A search's own end is the least of many times, so that what stands for 64 trials is 1 at most. Of networks' operators it is "
             "beside twice as many trials, not ten times: what is asked for is asked of the twenty alone."),
            ("The twenty had been measured before (`rival`, and this table at earlier commits), and searches and -O1 changed since: whoever "
             "changed them may have seen those times."),
        ),
    ),
    Claim(
        name="draft_throughput",
        title="How fast candidates are drafted",
        here=("Distinct candidates drawn or bred, checked, scored and offered to the best 512, per CPU second of one "
              "thread; beside them a program built for each candidate."),
        bench="draft",
        group="rate",
        rows=r"draft_per_s/|derive_ms/|draft_50000_s/|programs_per_s/",
        published=("The draft takes load off the learned model: 512 candidates a round instead of 8,000 (Pruner, ASPLOS'25, "
                   "arXiv 2402.02361, around Table 7). Nothing is said of candidates per second."),
        unfair=(
            ("Rates of sketches whose space is nearly exhausted are lower, since most proposals repeat; they stand apart. "
             "The files of the other machines are of an earlier, simpler analyzer and earlier kernels."),
        ),
    ),
    Claim(
        name="draft_quality",
        title="How good the draft is",
        here=("The pool's best time over the best of so many drafted, on pools measured on a CPU, by operator class, with the "
              "published analyzers and chance beside ours; the published analyzers with each penalty left out."),
        bench="draft",
        group="quality",
        rows=r"best\d+_at_\d+|space_quality/",
        published=("TenSet's T4 programs, 4,000 a subgraph, 512 drafted: Best-1 0.995; 0.880 without the penalties of compute, "
                   "0.930 without those of memory (Pruner, ASPLOS'25, arXiv 2402.02361, Table 10)."),
        unfair=(
            ("The pools are of one machine (Zen 4, one thread) and one recording of each candidate: best rows are partly "
             "lucky timings."),
            "`release` and `paper` are the published analyzers, written for GPUs; here they order candidates for a CPU.",
        ),
    ),
    Claim(
        name="cubins",
        title="Machine code for GPUs",
        here=("No device: what NVRTC and ptxas make of kernels, by nvdisasm. Rules are kept by every kernel of hand-written schedules and "
              "random members of the space; violations of each are planted and must be found. Below, of what -O1 chooses for named operators, "
              "the share of multiply-adds among the instructions of the main loop, with the widths of accesses to memory in the whole kernel."),
        bench="gpu_host",
        group="cubins",
        rows=r"(sass|violations_caught)/|linted$|violations$",
        published=("We found no mix of instructions that anybody states. CUTLASS says that sums take half of a thread's registers or more (`media/docs/cpp/efficient_gemm`), "
                   "and for tf32 on Hopper has products of [m, k] by [n, k] alone (`media/docs/cpp/functionality`); the last table has shapes, "
                   "stages, registers and rates that a source states."),
        arguments="--programs 420",
        unfair=("A share says how little else a loop does, not how fast it is; of kernels that wait for memory it says nothing.",
                "Published rates are of other sizes and GPUs, and of kernels that ran; ours here did not."),
    ),
    Claim(
        name="analyzer_h100",
        title="The GPU analyzer judged by an H100",
        here=("Candidates of our own space, 70 % of them drawn uniformly, that an H100 measured (`tests/data/h100`), ordered by "
              "analyzers that know its measured limits, as any search there does, and no time of a kernel: rank correlation, and the best "
              "time of all over the best among the first 1, 8 and 64. What has no symbols is priced by its program, as searches do."),
        bench="t4",
        arguments="--pools tests/data/h100",
        unfair=(
            ("`analyzer_h100_before.json` is the first look at twelve of the sixteen pools, by the analyzer as it was when they were recorded. "
             "The four others (`conv3x3_f16_56`, `gemm_f16_4096`, `gemm_f32_1024`, `softmax_4096`) had been looked at before, and so had times of "
             "other candidates of the same operators (`tests/data/h100/drafted`). After that look two things were changed (costmodel/DESIGN.md, "
             "D36), so `analyzer_h100.json` is no judgement of what nobody has seen."),
            "Two H100, sixteen operators, one kind of device; the seeds break ties.",
        ),
    ),
    Claim(
        name="t4",
        title="The GPU analyzer judged by other people's GPUs",
        here=("Every configuration of CLBlast's matrix product (18,000; 10,000 on the laptop) and of a convolution of an image (4,400) that "
              "others measured on seven GPUs, ordered by analyzers that know the data sheets alone: rank correlation, and the best time of "
              "all over the best among the first 1, 8 and 64 (1: the best is there). `fitted`: coefficients from RTX 2080 Ti and RTX 3060 "
              "laptop (product), A4000 and A6000 (convolution), chosen before anything was judged; `times of`: the order of another GPU's "
              "measured times. `t4_before.json` is the analyzer as it was before it had seen any of this."),
        bench="t4",
        unfair=(
            ("After the first look at `t4_before.json` the analyzer was changed twice (costmodel/DESIGN.md, D32 and D34), the second time with "
             "constants set by hand while looking at all seven, so none of these GPUs is untouched: how well it orders them is how well "
             "it was made to. The H100 above was measured after most of that. Of the convolution on the A100 chance is ahead with 64."),
            ("TITAN RTX and RTX 2080 Ti are one chip (TU102), A6000 and RTX 3090 another (GA102): their times order each other well because of that. "
             "The laptop's file has 10,000 of the configurations; those that it lacks come last in an order by its times and are left out of its "
             "rank correlation."),
            ("The kernels are ours after theirs: constant memory, `__ldg` and the update in place are not expressed (tests/data/t4/README.md). "
             "Configurations with more than 255 registers by our count come last; some of them ran."),
            "Data sheets' boost clocks and rates; of the laptop the lowest power limit, since its file names none.",
        ),
    ),
    *ALGEBRA,
    Claim(
        name="ablation",
        title="What the parts of the search are worth",
        here=("The default strategy with one thing changed, by replay on every pool: how far the best so far is from the "
              "pool's best, mean over trials."),
        bench="draft",
        group="ablation",
        rows=r"regret/",
        published=("Without the draft, both search time and final latency rise, offline too (Pruner, ASPLOS'25, arXiv "
                   "2402.02361, Tables 12 and 13)."),
        arguments="--seeds 3",
        unfair=(
            ("By replay: a pool holds what was recorded, not all that a search could propose. Differences are smaller than "
             "those between pools."),
            ("Trials before the first gain was known count as none in this file, which spares every variant its first batch; since then they "
             "count as that gain."),
        ),
    ),
    *MODELS,
    Claim(
        name="schedule-zen4-2core",
        title="The schedule language and its verifier",
        here=("Rates of replaying and verifying schedules, products by dot-product instructions as a part of the "
              "instruction's own rate, and counts of false alarms and of faulty programs that passed."),
        bench="schedule",
        unfair=(
            "No rival: nothing else checks these schedules.",
        ),
    ),
    Claim(
        name="robust",
        title="Killed, starved, crowded, lied to",
        here=("Counts of faults: hostile files of eleven kinds that are read (ONNX models, weights and other tuners' results have tests "
              "instead), searches that are killed, many writers, full disks, tuned winners of random operators beside a reference in Python, "
              "kernels that cheat."),
        bench="robust",
        unfair=(
            "No rival: others do not publish such counts.",
            "Files, operators and moments are random ones of one seed; what no generator of ours makes is not counted.",
            ("In this file a full disk counts as complained of wherever the log has the word error, also in \"largest error\" of a comparison; "
             "since then only a status or a line that is an error or a warning does."),
        ),
    ),
]
