// Tiles of a convolution's factor: rows are pixels of NHWC images that follow each other, columns
// channels, as the copy engine's im2col mode makes them.
#ifndef PRUNERC_IR_TENSOR_PIXEL_WINDOW_H_
#define PRUNERC_IR_TENSOR_PIXEL_WINDOW_H_

#include "ir/arith/interval.h"
#include "ir/arith/linear.h"
#include "ir/builder.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::ir {

/// Row i is pixel (n, h, w) of images, where with p = first + i
///   w = p % bases[1]*steps[1] + lower[1] + offset[1]
///   h = p // bases[1] % bases[0]*steps[0] + lower[0] + offset[0]
///   n = p // (bases[0]*bases[1]) + image;
/// pairs are along h and w.
struct PixelWindow {
  int64_t images = 1;
  std::array<int64_t, 2> extents{1, 1};  // of an image
  std::array<int64_t, 2> bases{1, 1};    // pixels of an image at which windows stand
  std::array<int64_t, 2> steps{1, 1};    // from one of those to the next
  std::array<int64_t, 2> lower{0, 0};    // the first of them
  Expr first, image;
  std::array<Expr, 2> offset;  // never negative
  /// From the last pixel of an image to the last of those.
  int64_t upper(std::size_t d) const {
    return lower[d] + (bases[d] - 1) * steps[d] - (extents[d] - 1);
  }
};

/// What is known of a copy out of a buffer [images, h, w, channels].
struct WindowRows {
  const Var* row = nullptr;
  const Var* column = nullptr;  // moves the last index alone
  std::vector<int64_t> shape;
  std::vector<Linear> indices;  // of the buffer
  std::vector<Linear> slacks;   // each is positive where the element is wanted
};

/// Nullopt if rows are not such pixels, if the engine could not count them, or if what is outside
/// of the images is not just what is not wanted.
std::optional<PixelWindow> find_pixel_window(IrBuilder& b, const WindowRows& rows,
                                             const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_PIXEL_WINDOW_H_
