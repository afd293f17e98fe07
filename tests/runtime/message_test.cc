#include "runtime/worker/message.h"

#include "ir/support/rng.h"
#include "runtime/clock.h"
#include "runtime/worker/frame.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace prunerc::runtime {
namespace {

std::string random_bytes(Rng& rng, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

JobMessage example_job() {
  JobMessage job;
  job.artifact = "bytes of an artifact";
  job.inputs = {{.fill = Fill::kIota, .seed = 3, .offset = 0},
                {.fill = Fill::kBytes, .seed = 0, .offset = 4096}};
  job.want_outputs = true;
  job.outputs_offset = 8192;
  job.want_timing = true;
  job.timing.best_known_ns = 123.5;
  job.timing.cache = CacheState::kFlushed;
  job.timing.constants_bytes = 77;
  return job;
}

Measurement example_measurement() {
  Measurement measurement;
  measurement.status = MeasureStatus::kOk;
  measurement.disturbed = true;
  measurement.samples_ns = {1.5, 2.5};
  measurement.median_ns = 2;
  measurement.detail = "text";
  return measurement;
}

TEST_CASE("frames come out as they went in, however the stream is cut") {
  const std::vector<Frame> frames = {{.type = FrameType::kReady, .payload = ""},
                                     {.type = FrameType::kRun, .payload = std::string(1000, 'x')},
                                     {.type = FrameType::kDone, .payload = "abc", .request = 7}};
  std::string stream;
  for (const Frame& frame : frames) stream += encode(frame);
  for (size_t step = 1; step < 40; ++step) {
    FrameParser parser;
    std::vector<Frame> seen;
    for (size_t at = 0; at < stream.size(); at += step) {
      parser.feed(std::string_view(stream).substr(at, step));
      while (auto frame = parser.next()) seen.push_back(*frame);
    }
    REQUIRE(seen == frames);
  }
}

TEST_CASE("random bytes never make a frame parser do more than refuse") {
  Rng rng(1);
  for (int i = 0; i < 5000; ++i) {
    FrameParser parser;
    std::string stream =
        encode(Frame{.type = FrameType::kDone, .payload = random_bytes(rng, rng.below(50))});
    if (rng.chance(0.5)) stream[rng.below(stream.size())] = static_cast<char>(rng.below(256));
    parser.feed(stream + random_bytes(rng, rng.below(60)));
    int frames = 0;
    while (parser.next()) ++frames;
    REQUIRE(frames <= 10);
    if (!parser.is_broken()) continue;
    parser.feed(encode(Frame{.type = FrameType::kReady, .payload = {}}));
    REQUIRE(!parser.next());
  }
}

TEST_CASE("a frame that claims a gigabyte is refused at its header") {
  std::string header = encode(Frame{.type = FrameType::kDone, .payload = {}});
  header[15] = '\x40';
  FrameParser parser;
  parser.feed(header);
  CHECK(!parser.next());
  CHECK(parser.is_broken());
}

TEST_CASE("reading a frame ends at the deadline, at the end of the pipe, and on garbage") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  FrameParser parser;
  Frame frame;
  const int64_t started_ns = now_ns();
  CHECK(read_frame(ends[0], parser, started_ns + 30'000'000, &frame) == ReadStatus::kDeadline);
  CHECK(now_ns() - started_ns >= 30'000'000);
  const std::string bytes = encode(Frame{.type = FrameType::kReady, .payload = "x"});
  REQUIRE(write_all(ends[1], bytes + bytes.substr(0, 5)));
  CHECK(read_frame(ends[0], parser, now_ns() + 1'000'000'000, &frame) == ReadStatus::kFrame);
  CHECK(frame.payload == "x");
  close(ends[1]);
  CHECK(read_frame(ends[0], parser, now_ns() + 1'000'000'000, &frame) == ReadStatus::kEnd);
  close(ends[0]);
  FrameParser broken;
  broken.feed("this is not a frame");
  CHECK(read_frame(ends[0], broken, now_ns() + 1'000'000'000, &frame) == ReadStatus::kBroken);
}

TEST_CASE("writing to who does not read ends at the deadline") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  CHECK(write_until(ends[1], "short", now_ns() + 1'000'000'000) == WriteStatus::kWritten);
  const std::string large(1 << 20, 'x');
  CHECK(write_until(ends[1], large, now_ns() + 20'000'000) == WriteStatus::kDeadline);
  close(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);
  CHECK(write_until(ends[1], large, now_ns() + 1'000'000'000) == WriteStatus::kClosed);
  close(ends[1]);
}

TEST_CASE("messages survive a round trip") {
  const ConfigureMessage configure = {.num_threads = 2, .memory_limit_bytes = 77};
  CHECK(decode_configure(encode(configure)) == configure);
  CHECK(decode_job(encode(example_job())) == example_job());
  CompareMessage compare;
  compare.jobs = {example_job(), JobMessage{}};
  CHECK(decode_compare(encode(compare)) == compare);
  const std::vector<Measurement> measurements = {example_measurement(), Measurement{}};
  CHECK(decode_measurements(encode(measurements)) == measurements);
}

TEST_CASE("truncated and damaged messages are refused or decode to something valid") {
  Rng rng(2);
  CompareMessage compare;
  compare.jobs = {example_job(), example_job()};
  const std::string job = encode(example_job());
  const std::string jobs = encode(compare);
  const std::string measurements = encode(std::vector<Measurement>{example_measurement()});
  for (size_t size = 0; size < jobs.size(); ++size)
    CHECK(!decode_compare(std::string_view(jobs).substr(0, size)));
  for (size_t size = 0; size < job.size(); ++size)
    CHECK(!decode_job(std::string_view(job).substr(0, size)));
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = rng.chance(0.5) ? jobs : measurements;
    damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    if (const auto decoded = decode_compare(damaged)) REQUIRE(decoded->jobs.size() <= 2);
    if (const auto decoded = decode_measurements(damaged)) {
      for (const Measurement& m : *decoded)
        REQUIRE(static_cast<int>(m.status) < kNumMeasureStatuses);
    }
    static_cast<void>(decode_job(random_bytes(rng, rng.below(200))));
  }
}

TEST_CASE("a measurement with an infinite time is refused") {
  Measurement measurement = example_measurement();
  measurement.samples_ns[0] = HUGE_VAL;
  CHECK(!decode_measurements(encode(std::vector<Measurement>{measurement})));
}

TEST_CASE("a worker without threads is refused") {
  CHECK(!decode_configure(encode(ConfigureMessage{.num_threads = 0, .memory_limit_bytes = 0})));
  CHECK(!decode_configure(encode(ConfigureMessage{.num_threads = 1, .memory_limit_bytes = -1})));
}

}  // namespace
}  // namespace prunerc::runtime
