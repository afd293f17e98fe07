#include "costmodel/xgb.h"

#include "costmodel/xgb_library.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

namespace prunerc::costmodel {
namespace {

/// Training without a fall of the error by this part of it counts as standing still.
constexpr double kLeastGain = 1e-3;
/// Error below which labels are matched better than they are known.
constexpr double kGoodEnough = 2e-3;
/// What did not run must still pull its like down.
constexpr float kLeastWeight = 0.02f;
constexpr int kMarginOnly = 1;

// Rows of all programs below each other, and which program each row belongs to.
struct Rows {
  std::vector<float> data;
  std::vector<std::size_t> owner;

  explicit Rows(std::span<const ProgramFeatures* const> programs) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      for (const StatementFeatures& statement : *programs[i]) {
        data.insert(data.end(), statement.begin(), statement.end());
        owner.push_back(i);
      }
    }
  }
  std::size_t size() const { return owner.size(); }
};

class Matrix {
 public:
  static Result<Matrix> make(const XgbLibrary& library, const Rows& rows) {
    Matrix matrix(library);
    // No value stands for "missing": features are finite.
    if (library.matrix_create(rows.data.data(), rows.size(), kNumStatementFeatures, NAN,
                              &matrix.handle_) != 0) {
      return error(Diag::kModelData, std::string(library.last_error()));
    }
    return matrix;
  }
  Matrix(Matrix&& other) noexcept
      : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  Matrix& operator=(Matrix&&) = delete;
  ~Matrix() {
    if (handle_ != nullptr) library_->matrix_free(handle_);
  }
  XgbLibrary::Handle get() const { return handle_; }

 private:
  explicit Matrix(const XgbLibrary& library) : library_(&library) {}
  const XgbLibrary* library_;
  XgbLibrary::Handle handle_ = nullptr;
};

}  // namespace

struct TreeEnsemble::Impl {
  XgbLibrary library;
  XgbLibrary::Handle booster = nullptr;
  std::mutex mutex;  // the library keeps a prediction in the booster
  int num_trees = 0;

  ~Impl() {
    if (booster != nullptr) library.booster_free(booster);
  }

  bool configure(const TreeOptions& options) {
    const std::pair<const char*, std::string> params[] = {
        {"max_depth", std::to_string(options.max_depth)},
        {"gamma", std::to_string(options.gamma)},
        {"min_child_weight", std::to_string(options.min_child_weight)},
        {"eta", std::to_string(options.eta)},
        {"seed", std::to_string(options.seed)},
        {"tree_method", "hist"},
        {"nthread", "1"},
        {"base_score", "0"},
        {"verbosity", "0"},
        // The gradient is ours.
        {"disable_default_eval_metric", "1"},
    };
    return std::all_of(std::begin(params), std::end(params), [&](const auto& p) {
      return library.set_param(booster, p.first, p.second.c_str()) == 0;
    });
  }

  // Sum of the rows' scores by program. False if the library refuses.
  bool score(const Matrix& matrix, const Rows& rows, std::vector<double>* sums) {
    std::fill(sums->begin(), sums->end(), 0.0);
    if (num_trees == 0) return true;
    uint64_t length = 0;
    const float* values = nullptr;
    if (library.predict(booster, matrix.get(), kMarginOnly, 0, 0, &length, &values) != 0 ||
        length != rows.size()) {
      return false;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) (*sums)[rows.owner[i]] += values[i];
    return true;
  }

  bool train(const Matrix& matrix, const Rows& rows, std::span<const float> labels,
             std::span<const float> weights, const TreeOptions& options) {
    std::vector<float> gradient(rows.size()), hessian(rows.size());
    std::vector<float> num_rows(labels.size());
    for (const std::size_t program : rows.owner) ++num_rows[program];
    std::vector<double> sums(labels.size());
    double mark = HUGE_VAL;  // the error that a fall is measured from
    int standing = 0;
    for (int tree = 0; tree < options.max_trees && standing < options.patience; ++tree) {
      if (!score(matrix, rows, &sums)) return false;
      double error = 0, sum_of_weights = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const double off = sums[i] - labels[i];
        error += weights[i] * off * off;
        sum_of_weights += weights[i];
      }
      error = std::sqrt(error / std::max(sum_of_weights, 1e-9));
      if (error < kGoodEnough) break;
      // Many small falls are one: training goes on while trees together still gain something.
      const bool falls = error < mark * (1 - kLeastGain);
      if (falls) mark = error;
      standing = falls ? 0 : standing + 1;
      // Every row of a program is moved by what the program as a whole is off, together as far as
      // one row alone would be: without their number in the second derivative ten statements
      // overshoot, and training diverges.
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t program = rows.owner[i];
        gradient[i] = weights[program] * static_cast<float>(sums[program] - labels[program]);
        hessian[i] = weights[program] * num_rows[program];
      }
      if (library.boost(booster, matrix.get(), gradient.data(), hessian.data(), rows.size()) != 0) {
        return false;
      }
      ++num_trees;
    }
    return true;
  }
};

TreeEnsemble::TreeEnsemble(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TreeEnsemble::TreeEnsemble(TreeEnsemble&&) noexcept = default;
TreeEnsemble& TreeEnsemble::operator=(TreeEnsemble&&) noexcept = default;
TreeEnsemble::~TreeEnsemble() = default;

TreeOptions trees_of_many_tasks() {
  TreeOptions out;
  out.max_depth = 6;
  out.gamma = 0.003;
  out.min_child_weight = 2;
  out.max_trees = 300;
  return out;
}

Result<TreeEnsemble> TreeEnsemble::fit(std::span<const ProgramFeatures* const> programs,
                                       std::span<const float> labels, const TreeOptions& options) {
  std::vector<float> weights;
  for (const float label : labels) weights.push_back(std::max(label, kLeastWeight));
  return fit(programs, labels, weights, options);
}

Result<TreeEnsemble> TreeEnsemble::fit(std::span<const ProgramFeatures* const> programs,
                                       std::span<const float> labels,
                                       std::span<const float> weights, const TreeOptions& options) {
  PRUNERC_TRY(XgbLibrary library, load_xgboost());
  PRUNERC_CHECK(programs.size() == labels.size() && labels.size() == weights.size(),
                "a label and a weight for each program");
  const Rows rows(programs);
  if (rows.size() == 0) return error(Diag::kModelData, std::string("there are no statements"));
  auto impl = std::make_unique<Impl>();
  impl->library = library;
  PRUNERC_TRY(const Matrix matrix, Matrix::make(impl->library, rows));
  const XgbLibrary::Handle handle = matrix.get();
  const bool trained = library.booster_create(&handle, 1, &impl->booster) == 0 &&
                       impl->configure(options) &&
                       impl->train(matrix, rows, labels, weights, options);
  if (!trained) return error(Diag::kModelData, std::string(library.last_error()));
  return TreeEnsemble(std::move(impl));
}

void TreeEnsemble::predict(std::span<const ProgramFeatures* const> programs,
                           std::span<double> scores) const {
  std::vector<double> sums(programs.size());
  const Rows rows(programs);
  if (rows.size() > 0) {
    const Result<Matrix> matrix = Matrix::make(impl_->library, rows);
    const std::lock_guard lock(impl_->mutex);
    const bool scored = matrix.ok() && impl_->score(*matrix, rows, &sums);
    PRUNERC_CHECK(scored, "finite features can always be scored");
  }
  std::copy(sums.begin(), sums.end(), scores.begin());
}

int TreeEnsemble::num_trees() const { return impl_->num_trees; }

Result<void> check_xgboost() {
  PRUNERC_TRY_VOID(load_xgboost());
  return {};
}

}  // namespace prunerc::costmodel
