// The specifications, lengths and vectors on which codecs of CUDA devices are held to the
// compressors of hosts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compress/cases.h"

namespace sotto_test {

/// Chunks of default and odd lengths, longer than a block's memory, and whole vectors.
inline const std::vector<std::string>& device_specs() {
  static const std::vector<std::string> specs = {
      "none",
      "fp16",
      "bf16",
      "grid:8:0.05",
      "grid:3:0.5",
      "grid:1:1e30",
      "sign",
      "sign,chunk=100",
      "sign,chunk=1",
      "sign,chunk=8192",
      "sign,chunk=0",
      "sign,chunk=20000",
      "sign,scale=l2",
      "sign,scale=l2,chunk=0",
      "quant:1",
      "quant:2",
      "quant:4",
      "quant:8",
      "quant:3,chunk=64",
      "quant:5,chunk=100",
      "quant:6,chunk=0",
      "quant:7,chunk=12288",
      "quant:7,chunk=1",
      "quant:8,chunk=0",
      "quant:8,chunk=7",
      "quant:1,rounding=nearest",
      "quant:4,rounding=nearest,chunk=0",
      "quant:8,rounding=nearest",
      "quant:2,rounding=nearest,chunk=3",
  };
  return specs;
}

/// All to 300 with two of the vectors, and some with all of them.
inline std::vector<NamedVector> device_vectors() {
  std::vector<NamedVector> all;
  for (std::size_t n = 0; n <= 300; ++n) {
    all.push_back({"gaussian", gaussian(n, 1, n)});
    all.push_back({"huge", uniform(n, 3.4e38, n)});
  }
  for (const std::size_t n :
       {1U, 63U, 64U, 65U, 1000U, 1025U, 4095U, 4096U, 4097U, 8192U, 8193U, 25000U}) {
    for (NamedVector& vector : vectors(n)) {
      all.push_back(std::move(vector));
    }
  }
  return all;
}

}  // namespace sotto_test
