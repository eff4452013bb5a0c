// Compressors by what they promise.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sotto/compress/registry.h>

namespace sotto::test {

/// The examples of all compressors in the form that `need` asks for, where there is one.
inline std::vector<std::string> compressors_meeting(ContractKind need, std::size_t dimension) {
  std::vector<std::string> specs;
  for (const CompressorInfo& info : compressors()) {
    const auto compressor = make_compressor(info.example, need);
    if (compressor->contract(dimension).meets(need)) {
      specs.push_back(compressor->spec());
    }
  }
  return specs;
}

}  // namespace sotto::test
