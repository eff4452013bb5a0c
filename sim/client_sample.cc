#include <sotto/sim/client_sample.h>

#include <map>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

constexpr std::size_t kDrawsKept = 4;
/// Apart from the draws of compute times, which have bucket 0.
constexpr std::uint32_t kOfClients = 1;

}  // namespace

std::vector<std::uint32_t> draw_clients(std::uint64_t seed, std::uint32_t draw, std::size_t places,
                                        std::size_t clients) {
  check(places <= clients, "a client stands in one place at a time");
  RandomStream random(
      {.seed = seed, .round = draw, .purpose = Purpose::compute_time, .bucket = kOfClients});
  // Fisher–Yates, of which only the places that moved are kept.
  std::map<std::size_t, std::uint32_t> moved;
  const auto at = [&](std::size_t k) {
    const auto found = moved.find(k);
    return found == moved.end() ? static_cast<std::uint32_t>(k) : found->second;
  };
  std::vector<std::uint32_t> drawn(places);
  for (std::size_t k = 0; k < places; ++k) {
    const std::size_t other = k + random.below(clients - k);
    drawn[k] = at(other);
    moved[other] = at(k);
  }
  return drawn;
}

std::uint32_t ClientSample::client(Rank place, std::uint32_t draw) {
  auto found = drawn_.find(draw);
  if (found == drawn_.end()) {
    if (drawn_.size() == kDrawsKept) {
      drawn_.erase(drawn_.begin());
    }
    found = drawn_.emplace(draw, draw_clients(seed_, draw, places_, clients_)).first;
  }
  return found->second[static_cast<std::size_t>(place)];
}

}  // namespace sotto
