#include <sotto/study/scenario/costs.h>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto::study {

Bill bill_of(const Costs& costs, std::span<const double> bytes, std::span<const double> seconds) {
  check(bytes.size() == costs.nodes.size() && seconds.size() == costs.nodes.size(),
        "each node has a bill");
  Bill bill;
  for (std::size_t node = 0; node < bytes.size(); ++node) {
    const NodeCosts& of = costs.nodes[node];
    const double gb = bytes[node] * 1e-9;
    const double hours = seconds[node] / 3600;
    bill.money += of.per_gb * gb + of.per_hour * hours;
    bill.kwh += of.kwh_per_gb * gb + of.watts * 1e-3 * hours;
  }
  bill.money += costs.per_kwh * bill.kwh;
  return bill;
}

std::string money_text(const std::string& currency, double money) {
  return fmt::format("{:.3g}{}{}", money, currency.empty() ? "" : " ", currency);
}

std::string energy_text(double kwh) { return fmt::format("{:.3g} kWh", kwh); }

}  // namespace sotto::study
