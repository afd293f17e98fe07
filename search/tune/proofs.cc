#include "search/tune/proofs.h"

#include <algorithm>

namespace prunerc::search {
namespace {

/// Questions of each thread between two looks at the clock: the dearest takes about a second.
constexpr std::size_t kPortion = 1;

}  // namespace

Measurement refutation(const ir::FpvVerdict& verdict) {
  Measurement m;
  m.status = MeasureStatus::kNotEqual;
  m.detail = to_string(verdict);
  return m;
}

std::vector<ir::FpvVerdict> Proofs::draft(TaskState& state, std::span<const Candidate> candidates) {
  std::vector<ir::FpvVerdict> verdicts(candidates.size());
  std::vector<EqualityQuestion> questions;
  for (std::size_t i = 0; i < candidates.size() && check_; ++i) {
    if (state.known(candidates[i].fingerprint) == nullptr) questions.push_back({i});
  }
  const std::vector<EqualityResult> results =
      check_candidates(check_, *state.task, candidates, questions, 0, seed_, pool_);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    state.report.seconds.verify += results[i].seconds;
    if (results[i].verdict.kind == ir::VerdictKind::kUnsupported) ++state.report.unchecked;
    verdicts[questions[i].candidate] = results[i].verdict;
  }
  return verdicts;
}

void Proofs::prove(TaskState& state, std::span<const Candidate> candidates,
                   std::span<const ir::FpvVerdict> before, std::span<Measurement> answers,
                   const std::function<bool()>& goes_on) {
  std::vector<Question> wanted;
  for (std::size_t i = 0; i < answers.size() && check_; ++i) {
    if (!answers[i].ok() || !before[i].ok()) continue;
    if (state.known(candidates[i].fingerprint) != nullptr) continue;
    Question question;
    question.known = before[i].log2_error;
    question.tests = before[i].tests;
    question.question = {i, std::min(kDraftLog2Error, kStoredLog2Error - question.known)};
    wanted.push_back(question);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [&](const Question& a, const Question& b) {
    return answers[a.question.candidate].median_ns < answers[b.question.candidate].median_ns;
  });
  const std::size_t portion = kPortion * static_cast<std::size_t>(pool_.num_threads());
  for (std::size_t begin = 0; begin < wanted.size(); begin += portion) {
    const std::size_t end = std::min(wanted.size(), begin + portion);
    std::vector<EqualityQuestion> questions;
    for (std::size_t i = begin; i < end; ++i) questions.push_back(wanted[i].question);
    if (!goes_on()) return;
    const std::vector<EqualityResult> results =
        check_candidates(check_, *state.task, candidates, questions, 1, seed_, pool_);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const std::size_t at = questions[i].candidate;
      state.report.seconds.verify += results[i].seconds;
      answers[at].verify_s += results[i].seconds;
      keep(key_of(state, candidates[at]), results[i].verdict, wanted[begin + i], &answers[at]);
    }
  }
}

void Proofs::prove_winner(TaskState& state, const Candidate& candidate, Measurement* answer) {
  if (!check_) return;
  if (const auto at = proofs_.find(key_of(state, candidate)); at != proofs_.end()) {
    if (is_refuted(at->second.verdict)) *answer = refutation(at->second.verdict);
    return;
  }
  const EqualityQuestion question = {0, kStoredLog2Error};
  const std::vector<EqualityResult> results =
      check_candidates(check_, *state.task, {&candidate, 1}, {&question, 1}, 1, seed_, pool_);
  state.report.seconds.verify += results[0].seconds;
  answer->verify_s += results[0].seconds;
  keep(key_of(state, candidate), results[0].verdict, {question}, answer);
}

void Proofs::keep(const Key& key, ir::FpvVerdict verdict, const Question& question,
                  Measurement* answer) {
  if (verdict.ok()) {
    verdict.log2_error += question.known;
    verdict.tests += question.tests;
  }
  // What is said of a winner beside the values that were compared.
  const std::string words =
      verdict.ok() ? "; on a twin " + to_string(verdict)
                   : "; these values alone: finite fields gave no verdict (" + verdict.text + ")";
  proofs_[key] = {verdict, words};
  if (is_refuted(verdict)) *answer = refutation(verdict);
}

void Proofs::add_to(const TaskState& state, const Candidate& candidate, Measurement* m) const {
  const auto at = proofs_.find(key_of(state, candidate));
  if (m->ok() && at != proofs_.end()) m->evidence += at->second.words;
}

}  // namespace prunerc::search
