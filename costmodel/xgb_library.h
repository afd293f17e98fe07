// The few functions of xgboost's C interface that are called, found in the library when they are
// first needed: a machine without it loses this model and nothing else.
#ifndef PRUNERC_COSTMODEL_XGB_LIBRARY_H_
#define PRUNERC_COSTMODEL_XGB_LIBRARY_H_

#include "ir/support/result.h"

#include <cstdint>
#include <string>

namespace prunerc::costmodel {

/// Function pointers with xgboost's own names, without their prefix. All return 0 on success.
struct XgbLibrary {
  using Handle = void*;
  int (*matrix_create)(const float* data, uint64_t rows, uint64_t columns, float missing,
                       Handle* out) = nullptr;  // DMatrixCreateFromMat
  int (*matrix_free)(Handle matrix) = nullptr;  // DMatrixFree
  int (*booster_create)(const Handle* matrices, uint64_t count, Handle* out) = nullptr;
  int (*booster_free)(Handle booster) = nullptr;
  int (*set_param)(Handle booster, const char* name, const char* value) = nullptr;
  int (*boost)(Handle booster, Handle matrix, float* gradient, float* hessian,
               uint64_t length) = nullptr;  // BoosterBoostOneIter
  int (*predict)(Handle booster, Handle matrix, int options, unsigned tree_limit, int training,
                 uint64_t* length, const float** out) = nullptr;
  const char* (*last_error)() = nullptr;
};

/// Loads the library once. Errors: ModelLibrary. `name` is for tests; null: the installed one.
Result<XgbLibrary> load_xgboost(const char* name = nullptr);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_XGB_LIBRARY_H_
