// docs/gpu.md names the compressors that a device has.
#include <string>

#include <doctest/doctest.h>

#include "accelerator/device.h"

#include <sotto/base/error.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/compress/registry.h>

#include "support/document.h"

namespace sotto::test::documents_test {

namespace {

/// Whether a device has the compressor, as a user writes it, for a model of two tensors.
bool adopts(const Accelerator& accelerator, const CompressorInfo& family) {
  ParameterLayout layout;
  append_block(layout, "weight", {64, 64});
  append_block(layout, "bias", {64});
  try {
    const auto made = make_compressor(family.example, ContractKind::any, host_ops(), layout);
    return accelerator.adopt(*made) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("the page of GPUs names exactly the compressors that a device has") {
  static const cuda::Stream stream = make_stream();
  const auto accelerator = cuda::make_accelerator(stream);
  const std::string named = passage("gpu.md", "**Compressors.**", "Others, ");
  for (const CompressorInfo& family : compressors()) {
    CAPTURE(std::string(family.name));
    CHECK(has_code(named, family.name) == adopts(*accelerator, family));
  }
}

}  // namespace sotto::test::documents_test
