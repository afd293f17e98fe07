#include "runtime/cpu/cpus.h"

#include <catch2/catch.hpp>
#include <sched.h>

namespace prunerc::runtime {
namespace {

TEST_CASE("a quota is enough for so many CPUs, rounded up") {
  CHECK(cpus_of_quota("200000 100000") == 2);
  CHECK(cpus_of_quota("150000 100000") == 2);
  CHECK(cpus_of_quota("100000 100000") == 1);
  CHECK(cpus_of_quota("1000 100000") == 1);
  CHECK(cpus_of_quota("max 100000") == 0);
  CHECK(cpus_of_quota("-1 100000") == 0);
  CHECK(cpus_of_quota("100000") == 0);
  CHECK(cpus_of_quota("100000 0") == 0);
  CHECK(cpus_of_quota("100000 x") == 0);
  CHECK(cpus_of_quota("") == 0);
  CHECK(cpus_of_quota(" ") == 0);
}

TEST_CASE("a process may use the CPUs of its affinity mask") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  CHECK(usable_cpus() >= 1);
  CHECK(usable_cpus() <= CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(usable_cpus() == 1);
  REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
}

}  // namespace
}  // namespace prunerc::runtime
