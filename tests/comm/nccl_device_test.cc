// NCCL itself on a GPU, where there is one: a rank that sends to itself, as NCCL lets no other have
// the same GPU. More of them: nccl_devices_test.cc. Built by scripts/gpu too, without the rest.
#include <doctest/doctest.h>

#include "support/skip.h"

#ifdef SOTTO_HAVE_NCCL
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <sotto/comm/deadline.h>
#include <sotto/comm/nccl/api.h>
#endif

namespace sotto::test::nccl_device_test {

#ifdef SOTTO_HAVE_NCCL

using internal::DeviceMemory;
using internal::DeviceRoom;

TEST_CASE("NCCL on a GPU: one rank sends itself messages of several lengths in one group") {
  const auto made = internal::make_cuda_device(0);
  if (!made) {
    SOTTO_SKIP(made.status().message());
  }
  internal::Device& device = **made;
  const auto library = internal::make_nccl_library();
  const auto id = library->make_id();
  REQUIRE_MESSAGE(id.ok(), id.status().message());
  const auto communicator = library->join(1, *id, 0);
  REQUIRE_MESSAGE(communicator.ok(), communicator.status().message());
  const auto settle = [&] {
    const auto end = Deadline::after(std::chrono::seconds(60));
    for (;;) {
      const auto settled = library->settled(*communicator);
      REQUIRE_MESSAGE(settled.ok(), settled.status().message());
      if (*settled) {
        return;
      }
      REQUIRE_FALSE(end.expired());
    }
  };
  settle();
  const auto stream = *device.make_stream();
  const auto mark = *device.make_event();
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{65'537}, std::size_t{1} << 24U}) {
    CAPTURE(bytes);
    const auto host = std::move(*DeviceMemory::make(device, DeviceRoom::pinned, bytes));
    const auto back = std::move(*DeviceMemory::make(device, DeviceRoom::pinned, bytes));
    const auto from = std::move(*DeviceMemory::make(device, DeviceRoom::device, bytes));
    const auto to = std::move(*DeviceMemory::make(device, DeviceRoom::device, bytes));
    std::uint32_t state = 1;
    for (std::byte& one : host.bytes()) {
      state = state * 1664525U + 1013904223U;
      one = static_cast<std::byte>(state >> 24U);
    }
    REQUIRE(device.copy(host.bytes(), from.bytes().data(), stream).ok());
    REQUIRE(library->begin_group().ok());
    REQUIRE(library->send(from.bytes(), 0, *communicator, stream).ok());
    REQUIRE(library->receive(to.bytes(), 0, *communicator, stream).ok());
    REQUIRE(library->end_group().ok());
    settle();
    REQUIRE(device.copy(to.bytes(), back.bytes().data(), stream).ok());
    REQUIRE(device.record(mark, stream).ok());
    const auto end = Deadline::after(std::chrono::seconds(60));
    for (auto passed = device.passed(mark); !*passed; passed = device.passed(mark)) {
      REQUIRE(passed.ok());
      REQUIRE_FALSE(end.expired());
    }
    CHECK(std::equal(back.bytes().begin(), back.bytes().end(), host.bytes().begin()));
  }
  REQUIRE(library->finalize(*communicator).ok());
  settle();
  library->destroy(*communicator);
  device.destroy(mark);
  device.destroy(stream);
}

#else

TEST_CASE("NCCL on a GPU: one rank sends itself messages of several lengths in one group") {
  SOTTO_SKIP("built without NCCL");
}

#endif

}  // namespace sotto::test::nccl_device_test
