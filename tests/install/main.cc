// Touches every library, so that a missing symbol or header of the installed package shows.
#include <sotto/base/digest.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/lockstep.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>
#include <sotto/trainers/optimizer.h>

#include <cmath>
#include <cstdio>

int main() {
  const auto ring = sotto::make_topology("ring", 8);
  const double rho = sotto::spectrum(*ring).rho;
  const double expected = (1 + 2 * std::sqrt(0.5)) / 3;
  std::printf("%zu algorithms, %zu compressors, %zu transports, ring of 8: rho = %.6f\n",
              sotto::algorithms().size(), sotto::compressors().size(), sotto::transports().size(),
              rho);
  const bool ok = std::abs(rho - expected) < 1e-6 && sotto::sha256_hex({}).size() == 64 &&
                  sotto::make_compressor("quant:8")->max_bytes(0) < 64;
  return ok ? 0 : 1;
}
