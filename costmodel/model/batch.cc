#include "costmodel/model/batch.h"

namespace prunerc::costmodel::model {
namespace {

/// Stands for the offsets of an input that a batch does not have.
constexpr int32_t kNoOffsets[] = {0};

// Offsets of the shard's programs; [0] if the batch has none.
std::span<const int32_t> offsets_of(const std::vector<int32_t>& begin, int programs,
                                    const nn::Shard& shard) {
  if (static_cast<int>(begin.size()) != programs + 1) return kNoOffsets;
  return std::span(begin).subspan(static_cast<std::size_t>(shard.first),
                                  static_cast<std::size_t>(shard.count) + 1);
}

template <typename T>
nn::View<const T> rows_of(const nn::Matrix<T>& m, std::span<const int32_t> begin) {
  return m.view().row_range(begin.front(), begin.back() - begin.front());
}

// Rows first .. first + count of each program, if there are any.
template <typename T>
nn::View<const T> rows_of(const nn::Matrix<T>& m, int first, int count) {
  return m.rows() == 0 ? nn::View<const T>{} : m.view().row_range(first, count);
}

}  // namespace

void append(const ProgramView& program, Batch<float>* batch) {
  batch->statements.append(program.statements);
  batch->statement_begin.push_back(batch->statements.rows());
  batch->flow.append(program.flow);
  batch->flow_begin.push_back(batch->flow.rows());
  batch->context.append(program.context);
  batch->tokens.append(program.tokens);
  batch->token_length = program.tokens.rows;
  ++batch->programs;
}

Batch<float> gather(const Batch<float>& batch, std::span<const int> which) {
  Batch<float> result;
  for (const int i : which) {
    const BatchView<float> one = slice(batch, {i, 1});
    append({one.statements, one.flow, one.context, one.tokens}, &result);
    for (int r = 0; r < one.flow.rows && !batch.flow_valid.empty(); ++r) {
      result.flow_valid.push_back(one.flow_segments.valid[r]);
    }
  }
  return result;
}

template <typename T>
BatchView<T> slice(const Batch<T>& batch, const nn::Shard& shard) {
  BatchView<T> view;
  view.programs = shard.count;
  view.token_length = batch.token_length;
  view.statement_segments.begin = offsets_of(batch.statement_begin, batch.programs, shard);
  view.flow_segments.begin = offsets_of(batch.flow_begin, batch.programs, shard);
  view.statements = rows_of(batch.statements, view.statement_segments.begin);
  view.flow = rows_of(batch.flow, view.flow_segments.begin);
  if (!batch.flow_valid.empty()) {
    view.flow_segments.valid = batch.flow_valid.data() + view.flow_segments.begin.front();
  }
  view.context = rows_of(batch.context, shard.first, shard.count);
  view.tokens =
      rows_of(batch.tokens, shard.first * batch.token_length, shard.count * batch.token_length);
  return view;
}

template BatchView<float> slice(const Batch<float>&, const nn::Shard&);
template BatchView<double> slice(const Batch<double>&, const nn::Shard&);

}  // namespace prunerc::costmodel::model
