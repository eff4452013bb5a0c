// What a scenario's nodes cost in money and energy. Plain values and pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sotto::study {

/// What one node costs while it takes part; money is in the scenario's currency, a GB is 10⁹ bytes.
struct NodeCosts {
  double per_gb = 0;      ///< money for what it sends
  double per_hour = 0;    ///< money from its start to its end, whether it computes or waits
  double watts = 0;       ///< from its start to its end
  double kwh_per_gb = 0;  ///< that the network spends on what it sends
};

/// The table [costs] of a scenario.
struct Costs {
  std::string currency;          ///< as tables show it, "EUR"; empty: money has no unit
  double per_kwh = 0;            ///< money for energy, which is part of the sum
  std::vector<NodeCosts> nodes;  ///< by node
};

/// What some nodes have cost up to a moment.
struct Bill {
  double money = 0;
  double kwh = 0;
};

/// The bill of all nodes: `bytes` they sent and `seconds` they took part, both by node.
Bill bill_of(const Costs& costs, std::span<const double> bytes, std::span<const double> seconds);

/// "12.3 EUR", "0.00421 EUR"; without a currency the number alone.
std::string money_text(const std::string& currency, double money);
/// "1.23 kWh"
std::string energy_text(double kwh);

}  // namespace sotto::study
