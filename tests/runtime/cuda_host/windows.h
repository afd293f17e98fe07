// Copies of convolution windows in TMA's im2col mode, with what they should bring.
#ifndef PRUNERC_TESTS_CUDA_HOST_WINDOWS_H_
#define PRUNERC_TESTS_CUDA_HOST_WINDOWS_H_

#include "codegen/artifact.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::testing {

/// Of each tap of a 3 x 3 filter 40 windows and 16 channels; pairs are along h and w.
struct Windows {
  int64_t images = 2, channels = 24;
  std::array<int64_t, 2> extents{9, 7}, pads{1, 1}, steps{1, 1}, dilations{1, 1};
  int64_t first = 0;    ///< of all windows
  int64_t channel = 0;  ///< the first one
};

/// One block that copies them out again; the text may be changed before it is compiled.
codegen::Artifact window_copy(const Windows& windows);
/// Different numbers, none of them 0.
std::string window_input(const Windows& windows);
std::string window_output(const Windows& windows);

/// Paddings, steps, dilations, images that end in a box, channels that do.
std::vector<Windows> all_windows();

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_CUDA_HOST_WINDOWS_H_
