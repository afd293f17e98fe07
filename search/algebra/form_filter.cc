#include "search/algebra/form_filter.h"

#include <algorithm>

namespace prunerc::search::algebra {
namespace {

// Divisors that are remembered, some 50 MB of them: operators have hundreds.
constexpr std::size_t kMaxSites = std::size_t{1} << 20;
// Members of a maximum whose subsets count as parts.
constexpr std::size_t kMaxMembers = 4;

}  // namespace

FormFilter::FormFilter(NormalForms& forms, const TermGraph& graph, std::span<const TermId> outputs)
    : forms_(forms) {
  // What the outputs are made of passes as well where it is inside of something too large to look at.
  for (const TermId id : reachable(graph, outputs)) {
    if (graph[id].op != TermOp::kMask) add_host(forms_.of(graph, id));
  }
}

void FormFilter::add_host(NfId id) {
  const Form form = forms_.form(id);  // a copy: more are made
  if (form.beyond) is_void_ = true;
  if (form.beyond || !known_.insert(forms_.hash(id)).second) return;
  const auto host = static_cast<int32_t>(hosts_.size());
  hosts_.emplace_back();
  for (const Monomial& m : form.monomials) {
    hosts_.back()[m.hash] += m.count;
    add_divisors(host, m);
  }
  largest_ = std::max(largest_, static_cast<int>(form.monomials.size()));
  for (const Monomial& m : form.monomials) add_parts(m);
}

// All products of factors of m, with either sign.
void FormFilter::add_divisors(int32_t host, const Monomial& m) {
  std::vector<uint64_t> divisors = {0};
  for (const auto& [f, exponent] : m.factors) {
    const std::size_t before = divisors.size();
    if (num_sites_ + before * static_cast<std::size_t>(exponent + 1) > kMaxSites) {
      is_void_ = true;
      return;
    }
    for (int e = 1; e <= exponent; ++e) {
      const uint64_t power = static_cast<uint64_t>(e) * forms_.factor(f).hash;
      for (std::size_t i = 0; i < before; ++i) divisors.push_back(divisors[i] + power);
    }
  }
  // Factors that differ in axes alone make equal divisors.
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  for (const uint64_t divisor : divisors) {
    sites_[divisor].push_back({host, m.hash});
    sites_[divisor + kSignHash].push_back({host, m.hash});
  }
  num_sites_ += 2 * divisors.size();
}

// What is inside of the factors of a monomial.
void FormFilter::add_parts(const Monomial& m) {
  Form exponent;
  for (const auto& [id, power] : m.factors) {
    const Factor f = forms_.factor(id);  // a copy: more are made
    switch (f.kind) {
      case Factor::Kind::kInput:
      case Factor::Kind::kConst:
      case Factor::Kind::kExtent:
      case Factor::Kind::kMask:
      case Factor::Kind::kInverse: break;
      case Factor::Kind::kExp: {
        Monomial argument = forms_.form(f.forms[0]).monomials.front();
        argument.count = power;
        argument.negative = f.negative;
        if (f.negative) argument.hash += kSignHash;
        exponent.monomials.push_back(std::move(argument));
        break;
      }
      case Factor::Kind::kInverseForm:
      case Factor::Kind::kFunction: add_members(f); break;
      case Factor::Kind::kExtreme: {
        add_members(f);
        if (f.forms.size() > kMaxMembers) break;
        for (uint32_t subset = 1; subset < (1U << f.forms.size()); ++subset) {
          std::vector<NfId> members;
          for (std::size_t i = 0; i < f.forms.size(); ++i) {
            if ((subset >> i & 1) != 0) members.push_back(f.forms[i]);
          }
          add_host(forms_.make_extreme(!f.negative, std::move(members), 0));
        }
        break;
      }
    }
  }
  if (!exponent.monomials.empty()) add_host(forms_.make(std::move(exponent)));
  add_inverted(m);
}

void FormFilter::add_members(const Factor& f) {
  for (const NfId member : f.forms) add_host(member);
}

// The product of all that m is divided by, exponentials turned over: 1 / e^x is e^-x.
void FormFilter::add_inverted(const Monomial& m) {
  NfId product = forms_.make({{Monomial{}}, false});
  bool is_inverted = false;
  for (const auto& [id, power] : m.factors) {
    const Factor f = forms_.factor(id);
    NfId inverse = -1;
    if (f.kind == Factor::Kind::kInverse) inverse = forms_.make_factor(f.base);
    if (f.kind == Factor::Kind::kInverseForm) inverse = f.forms[0];
    if (f.kind == Factor::Kind::kExp) inverse = forms_.make_factor(forms_.opposite(id));
    if (inverse < 0) continue;
    is_inverted = true;
    for (int e = 0; e < power; ++e) product = forms_.product(product, inverse);
  }
  if (is_inverted) add_host(product);
}

bool FormFilter::is_at(const Site& site, const HashedForm& form, uint64_t anchor) const {
  const std::unordered_map<uint64_t, int>& counts = hosts_[static_cast<std::size_t>(site.host)];
  const uint64_t rest = site.monomial - anchor;
  for (int i = 0; i < form.size; ++i) {
    const HashedForm::Part& part = form.parts[static_cast<std::size_t>(i)];
    const auto at = counts.find(part.hash + rest);
    if (at == counts.end() || at->second < part.count) return false;
  }
  return true;
}

bool FormFilter::passes(const HashedForm& form) {
  if (form.beyond || is_void_) {
    // What has more monomials than any host is a part of none.
    if (!is_void_ && largest_ <= HashedForm::kMaxParts) return false;
    ++num_beyond_;
    return true;
  }
  if (form.size == 0) return true;
  const std::vector<Site>* fewest = nullptr;
  uint64_t anchor = 0;
  for (int i = 0; i < form.size; ++i) {
    const uint64_t hash = form.parts[static_cast<std::size_t>(i)].hash;
    const auto at = sites_.find(hash);
    if (at == sites_.end()) return false;
    if (fewest != nullptr && at->second.size() >= fewest->size()) continue;
    fewest = &at->second;
    anchor = hash;
  }
  if (form.size == 1 && form.parts[0].count == 1) return true;
  return std::any_of(fewest->begin(), fewest->end(),
                     [&](const Site& site) { return is_at(site, form, anchor); });
}

}  // namespace prunerc::search::algebra
