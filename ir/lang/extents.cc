#include "ir/lang/extents.h"

namespace prunerc::lang {

Unknown Extents::make(std::string what, SourceRange range) {
  const auto id = static_cast<Unknown>(classes_.size());
  classes_.push_back({id, std::move(what), range, std::nullopt, {}, false});
  return id;
}

Unknown Extents::find(Unknown unknown) {
  while (classes_[static_cast<size_t>(unknown)].parent != unknown) {
    Class& item = classes_[static_cast<size_t>(unknown)];
    item.parent = classes_[static_cast<size_t>(item.parent)].parent;
    unknown = item.parent;
  }
  return unknown;
}

void Extents::report_conflict(Unknown unknown, int64_t value, SourceRange range) {
  Class& root = classes_[static_cast<size_t>(find(unknown))];
  if (!root.is_reported) {
    const std::string& what = classes_[static_cast<size_t>(unknown)].what;
    sink_.report<LangDiag::kExtentConflict>(range, what, value, *root.value)
        .note(root.value_range, fmt::format("it is {} here", *root.value));
  }
  root.is_reported = true;
}

void Extents::fix(Unknown unknown, int64_t value, SourceRange range) {
  Class& root = classes_[static_cast<size_t>(find(unknown))];
  if (!root.value) {
    root.value = value;
    root.value_range = range;
  } else if (*root.value != value) {
    report_conflict(unknown, value, range);
  }
}

void Extents::equate(Unknown a, Unknown b, SourceRange range) {
  const Unknown root_a = find(a);
  const Unknown root_b = find(b);
  if (root_a == root_b) return;
  Class& first = classes_[static_cast<size_t>(root_a)];
  Class& second = classes_[static_cast<size_t>(root_b)];
  if (first.value && second.value && *first.value != *second.value) {
    report_conflict(a, *second.value, range);
    second.is_reported = true;
  }
  const bool is_reported = first.is_reported || second.is_reported;
  second.parent = root_a;
  first.is_reported = is_reported;
  if (!first.value && second.value) {
    first.value = second.value;
    first.value_range = second.value_range;
  }
}

std::optional<int64_t> Extents::value(Unknown unknown) {
  return classes_[static_cast<size_t>(find(unknown))].value;
}

bool Extents::claim_unsolved(Unknown unknown) {
  Class& root = classes_[static_cast<size_t>(find(unknown))];
  const bool first_time = !root.is_reported;
  root.is_reported = true;
  return first_time;
}

}  // namespace prunerc::lang
