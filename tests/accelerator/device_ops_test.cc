// The table of operations for vectors on a device hands on what it is given, and waits where it
// answers.
#include <vector>

#include <doctest/doctest.h>

#include "accelerator/device.h"
#include "kernels/device_ops.h"
#include "kernels/every_operation.h"

#include <sotto/kernels/vector.h>

namespace sotto::test::device_ops_test {

TEST_CASE("operations on vectors of a device answer as the reference") {
  SOTTO_NEEDS_DEVICE();
  sotto::testing::hold_to_reference(sotto::testing::OverDevice());
}

// For compute-sanitizer, under which a call takes a hundred times as long.
TEST_CASE("a few lengths of vectors of a device answer as the reference") {
  SOTTO_NEEDS_DEVICE();
  sotto::testing::hold_to_reference(sotto::testing::OverDevice(), {0, 1, 7, 64, 301, 4097, 10000});
}

TEST_CASE("a vector on a device starts with zeros, is copied, and is moved to the host and back") {
  SOTTO_NEEDS_DEVICE();
  cuda::Queue queue;
  const cuda::DeviceOps ops(queue);
  std::vector<float> values(1000);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = static_cast<float>(k);
  }
  Vector x(values.size(), ops);
  CHECK(ops.sum_abs(x) == 0);
  ops.from_host(std::as_bytes(std::span(values)), x);
  const Vector y(x, ops);
  ops.scale(2, x);
  std::vector<float> back(values.size());
  ops.to_host(y, std::as_writable_bytes(std::span(back)));
  CHECK(back == values);
  CHECK(element(x, 999, ops) == 1998);
  Vector z = std::move(x);
  CHECK(z.size() == 1000);
  z = Vector(3, ops);
  CHECK(z.size() == 3);
  CHECK(queue.sound());
}

}  // namespace sotto::test::device_ops_test
