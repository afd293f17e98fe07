// The part of a space that a published search could have: baselines do not get what they lack.
#ifndef PRUNERC_SEARCH_SPACE_METASCHEDULE_SPACE_H_
#define PRUNERC_SEARCH_SPACE_METASCHEDULE_SPACE_H_

#include "search/space/space.h"

namespace prunerc::search {

/// Sketches for GPUs whose tensor instructions MetaSchedule has: products of f16 (sums in f32) and
/// of 8-bit integers by instructions of a warp, one mapping, the whole sum in one block. Sketches
/// without tensor instructions stay, but for those of two products in one kernel. Source: TVM,
/// s_tir/meta_schedule, rules of the CUDA TensorCore space: groups f16f16f32, f16f16f16 and s8s8s32
/// of wmma 16x16x16, and mma m16n8k8 of f16.
SearchSpace metaschedule_space(SearchSpace space);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_METASCHEDULE_SPACE_H_
