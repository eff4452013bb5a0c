#include <sotto/trainers/tasks/batch_shares.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <sotto/base/check.h>

namespace sotto {

std::vector<std::size_t> share_examples(std::size_t examples, std::span<const double> speeds) {
  check(speeds.size() <= examples, "an example for each node");
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<std::size_t> shares;
  std::vector<double> remainders;
  shares.reserve(speeds.size());
  remainders.reserve(speeds.size());
  for (const double speed : speeds) {
    check(std::isfinite(speed) && speed > 0, "a speed above 0");
    const double exact = static_cast<double>(examples) * (speed / all);
    shares.push_back(static_cast<std::size_t>(exact));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  const std::size_t dealt = std::accumulate(shares.begin(), shares.end(), std::size_t{0});
  for (std::size_t k = 0; k + dealt < examples; ++k) {
    ++shares[order[k % order.size()]];
  }
  for (std::size_t& share : shares) {
    if (share == 0) {
      --*std::ranges::max_element(shares);
      share = 1;
    }
  }
  return shares;
}

}  // namespace sotto
