#include "runtime/worker/job_runner.h"

#include "runtime/worker/frame.h"

namespace prunerc::runtime {

void JobRunner::enter(Stage stage, const OnProgress& on_progress) {
  __atomic_store_n(&status_->stage, static_cast<uint32_t>(stage), __ATOMIC_RELEASE);
  on_progress(stage);
}

void JobRunner::leave() {
  enter(Stage::kIdle, [](Stage) {});
}

void JobRunner::enter_job(size_t job_idx) {
  __atomic_store_n(&status_->job_idx, static_cast<uint32_t>(job_idx), __ATOMIC_RELEASE);
}

bool JobRunner::fill_input(const InputMessage& input, const codegen::ArtifactParam& param,
                           unsigned char* to) const {
  if (input.fill == Fill::kBytes) {
    return read_all_at(exchange_fd_, to, codegen::size_bytes(param), input.offset);
  }
  fill_tensor(input.fill, input.seed, param.dtype, codegen::num_elems(param), to);
  return true;
}

Measurement JobRunner::write_output(const unsigned char* data, int64_t bytes,
                                    int64_t* offset) const {
  if (!write_all_at(exchange_fd_, data, bytes, *offset)) {
    return failed(MeasureStatus::kDeviceLost, "not enough memory for the outputs");
  }
  *offset += bytes;
  return succeeded();
}

}  // namespace prunerc::runtime
