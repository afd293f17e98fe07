// Batch: what networks take: the features of many programs, one program after the other.
#ifndef PRUNERC_COSTMODEL_MODEL_BATCH_H_
#define PRUNERC_COSTMODEL_MODEL_BATCH_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/segments.h"
#include "costmodel/nn/shards.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::costmodel::model {

/// Rows of program i: statement_begin[i] .. statement_begin[i + 1], and so for the flow. What a
/// network does not read may be left empty.
template <typename T>
struct Batch {
  int programs = 0;
  nn::Matrix<T> statements;  // [statements of all programs, features of a statement and the task's]
  std::vector<int32_t> statement_begin = {0};
  nn::Matrix<T> flow;  // [steps of all programs, features of a step]
  std::vector<int32_t> flow_begin = {0};
  std::vector<uint8_t> flow_valid;  // by step, 0 where a step is padding; empty: none is
  nn::Matrix<T> context;            // [programs, hardware vector and tag of the operator]
  nn::Matrix<T> tokens;             // [programs * length, features of a token]
  int token_length = 0;
};

/// Features of one program; borrowed. `tokens` is [length, features].
struct ProgramView {
  nn::View<const float> statements, flow, context, tokens;
};

/// Adds a program. All programs of a batch have the same widths.
void append(const ProgramView& program, Batch<float>* batch);

/// The programs `which`, in this order.
Batch<float> gather(const Batch<float>& batch, std::span<const int> which);

/// Some programs of a batch, one after the other. Borrowed.
template <typename T>
struct BatchView {
  int programs = 0;
  nn::View<const T> statements, flow, context, tokens;
  nn::Segments statement_segments, flow_segments;
  int token_length = 0;
};

template <typename T>
BatchView<T> slice(const Batch<T>& batch, const nn::Shard& shard);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_BATCH_H_
