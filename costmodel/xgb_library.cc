#include "costmodel/xgb_library.h"

#include <dlfcn.h>

namespace prunerc::costmodel {
namespace {

constexpr const char* kPackage = "libxgboost0";
/// Debian's, and what a build from source installs.
constexpr const char* kNames[] = {"libxgboost.so.0", "libxgboost.so"};

template <typename F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(::dlsym(library, name));
  return *function != nullptr;
}

Error missing(const std::string& why) {
  return error(Diag::kModelLibrary, std::string("the xgboost library"), why, std::string(kPackage));
}

Result<XgbLibrary> open(const char* only) {
  void* library = nullptr;
  for (const char* name : kNames) {
    // Local: its symbols must not meet ours.
    if (library == nullptr)
      library = ::dlopen(only != nullptr ? only : name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return missing(why != nullptr ? why : "it cannot be loaded");
  }
  XgbLibrary out;
  const bool whole = find(library, "XGDMatrixCreateFromMat", &out.matrix_create) &&
                     find(library, "XGDMatrixFree", &out.matrix_free) &&
                     find(library, "XGBoosterCreate", &out.booster_create) &&
                     find(library, "XGBoosterFree", &out.booster_free) &&
                     find(library, "XGBoosterSetParam", &out.set_param) &&
                     find(library, "XGBoosterBoostOneIter", &out.boost) &&
                     find(library, "XGBoosterPredict", &out.predict) &&
                     find(library, "XGBGetLastError", &out.last_error);
  if (!whole) return missing("a function is not in it");
  return out;
}

}  // namespace

Result<XgbLibrary> load_xgboost(const char* name) {
  if (name != nullptr) return open(name);
  static const Result<XgbLibrary> installed = open(nullptr);
  return installed;
}

}  // namespace prunerc::costmodel
