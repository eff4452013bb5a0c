// libFuzzer's entry for the target SOTTO_FUZZ_TARGET.
#include <algorithm>
#include <cstdint>

#include <sotto/base/check.h>

#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto target =
      std::ranges::find(sotto_fuzz::targets(), SOTTO_FUZZ_TARGET, &sotto_fuzz::Target::name);
  sotto::check(target != sotto_fuzz::targets().end(), "the target is in the harness");
  target->run(target->name, std::as_bytes(std::span(data, size)));
  return 0;
}
