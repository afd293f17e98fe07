// Links between tasks: which programs compute what an operator does.
#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "search/record/database.h"
#include "search/record/sqlite.h"

#include <utility>

namespace prunerc::search {
namespace {

// Covers all that a wrong answer could come from. That is the programs too: a derived one is taken
// from the store, where an operator's own only has to be the one that was asked for.
int64_t checksum_of(const TaskKey& spec, const TaskKey& task, const DerivedLink& link) {
  uint64_t h = 0;
  for (const TaskKey* key : {&spec, &task}) {
    h = hash_bytes(key->hash, h);
    h = hash_bytes(key->program, h);
    h = hash_bytes(key->target, h);
  }
  h = hash_bytes(link.recipe, h);
  h = hash_bytes(link.numerics, h);
  h = hash_bytes(link.assumes, h);
  for (const int64_t number : {link.rules, link.tests, int64_t{link.imported ? 1 : 0}}) {
    h = hash_combine(h, static_cast<uint64_t>(number));
  }
  for (const double number : {link.flops, link.limit_ns, link.log2_error}) {
    h = hash_combine(h, hash_double(number));
  }
  return static_cast<int64_t>(h);
}

struct RawLink {
  int64_t spec = 0, task = 0, checksum = 0;
  DerivedLink link;
};

RawLink read_raw(Query& query) {
  RawLink raw;
  raw.spec = query.int_column();
  raw.task = query.int_column();
  raw.link.recipe = query.text_column();
  raw.link.rules = query.int_column();
  raw.link.numerics = query.text_column();
  raw.link.flops = query.double_column();
  raw.link.limit_ns = query.double_column();
  raw.link.log2_error = query.double_column();
  raw.link.tests = query.int_column();
  raw.link.assumes = query.text_column();
  raw.link.imported = query.int_column() != 0;
  raw.link.created = query.text_column();
  raw.checksum = query.int_column();
  return raw;
}

}  // namespace

Result<std::vector<std::optional<Database::Link>>> Database::select_links(const std::string& where,
                                                                          int64_t a, int64_t b) {
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "SELECT spec, task, recipe, rules, numerics, flops, limit_ns, "
                             "log2_error, tests, assumes, imported, created, checksum "
                             "FROM derived " +
                                 where + " ORDER BY id"));
  query.bind(a).bind(b);
  std::vector<std::optional<Link>> links;
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return links;
    RawLink raw = read_raw(query);
    PRUNERC_TRY(std::optional<TaskRow> spec, task_row(raw.spec));
    PRUNERC_TRY(std::optional<TaskRow> task, task_row(raw.task));
    std::optional<Link>& link = links.emplace_back();
    if (!spec || !task || raw.checksum != checksum_of(spec->key, task->key, raw.link)) continue;
    for (std::string* const text :
         {&raw.link.recipe, &raw.link.numerics, &raw.link.assumes, &raw.link.created}) {
      *text = printable_line(*text);
    }
    link = Link{*std::move(spec), *std::move(task), std::move(raw.link)};
  }
}

Result<void> Database::put_link(int64_t spec_task, int64_t task, const DerivedLink& link) {
  const auto refuse = [&](const char* why) {
    return error(Diag::kDatabaseQuery, path_, std::string(why));
  };
  if (link.recipe.empty()) return refuse("a derived task has a recipe");
  PRUNERC_TRY(const std::optional<TaskRow> from, task_row(spec_task));
  PRUNERC_TRY(const std::optional<TaskRow> to, task_row(task));
  if (!from || !to || spec_task == task) return refuse("a link is between two stored tasks");
  if (from->key.target != to->key.target) return refuse("a link is between tasks of one target");
  PRUNERC_TRY(const std::vector<std::optional<Link>> known,
              select_links("WHERE spec = ? AND task = ?", spec_task, task));
  if (!known.empty() && known[0] && (!known[0]->link.imported || link.imported)) return {};
  PRUNERC_TRY(Query drop,
              Query::prepare(db_.get(), path_, "DELETE FROM derived WHERE spec = ? AND task = ?"));
  drop.bind(spec_task).bind(task);
  PRUNERC_TRY_VOID(drop.run());
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "INSERT INTO derived (spec, task, recipe, rules, numerics, flops, "
                             "limit_ns, log2_error, tests, assumes, imported, created, checksum) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                             "CASE ?12 WHEN '' THEN strftime('%Y-%m-%dT%H:%M:%SZ', 'now') "
                             "ELSE ?12 END, ?)"));
  query.bind(spec_task).bind(task).bind(link.recipe).bind(link.rules).bind(link.numerics);
  query.bind(link.flops).bind(link.limit_ns).bind(link.log2_error).bind(link.tests);
  query.bind(link.assumes).bind(int64_t{link.imported ? 1 : 0}).bind(link.created);
  query.bind(checksum_of(from->key, to->key, link));
  return query.run();
}

Result<void> Database::put_derived(int64_t spec_task, int64_t task, const DerivedLink& link) {
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  PRUNERC_TRY_VOID(put_link(spec_task, task, link));
  return transaction.commit();
}

Result<void> Database::drop_derived(int64_t spec_task, int64_t task) {
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_, "DELETE FROM derived WHERE spec = ? AND task = ?"));
  query.bind(spec_task).bind(task);
  return query.run();
}

Result<std::vector<DerivedRow>> Database::derived_of(int64_t spec_task) {
  PRUNERC_TRY(std::vector<std::optional<Link>> links,
              select_links("WHERE spec = ? AND ?2 = 0", spec_task));
  std::vector<DerivedRow> rows;
  for (std::optional<Link>& one : links) {
    if (one) rows.push_back({std::move(one->task), std::move(one->link)});
  }
  return rows;
}

Result<std::vector<DerivedRow>> Database::specs_of(int64_t task) {
  PRUNERC_TRY(std::vector<std::optional<Link>> links,
              select_links("WHERE task = ? AND ?2 = 0", task));
  std::vector<DerivedRow> rows;
  for (std::optional<Link>& one : links) {
    if (one) rows.push_back({std::move(one->spec), std::move(one->link)});
  }
  return rows;
}

}  // namespace prunerc::search
