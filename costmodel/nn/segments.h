// Segments: which rows of a matrix belong together. A batch holds the rows of many programs one
// after the other; attention and pooling stay within a program's rows.
#ifndef PRUNERC_COSTMODEL_NN_SEGMENTS_H_
#define PRUNERC_COSTMODEL_NN_SEGMENTS_H_

#include <cstdint>
#include <span>

namespace prunerc::costmodel::nn {

/// Segment i has rows begin[i] - begin[0] to begin[i + 1] - begin[0]: a part of a longer list of
/// offsets is a list for a part of the rows. A segment may be empty.
struct Segments {
  std::span<const int32_t> begin;  // one more than there are segments
  /// By row; null if all are. A row that is not valid is padding: nobody attends to it, and no pool
  /// counts it.
  const uint8_t* valid = nullptr;

  int count() const { return static_cast<int>(begin.size()) - 1; }
  int first(int segment) const { return begin[static_cast<std::size_t>(segment)] - begin[0]; }
  int size(int segment) const { return first(segment + 1) - first(segment); }
  int num_rows() const { return first(count()); }
  bool is_valid(int row) const { return valid == nullptr || valid[row] != 0; }
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_SEGMENTS_H_
