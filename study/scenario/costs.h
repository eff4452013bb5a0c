// What a scenario's nodes cost in money and energy. Plain values and pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sotto::study {

/// What one node costs while it takes part; money is in the scenario's currency, a GB is 10⁹ bytes.
struct NodeCosts {
  double per_gb = 0;      ///< money for each GB that it sends
  double per_hour = 0;    ///< money an hour while it is there and not suspended, also waiting
  double watts = 0;       ///< power in watts in these hours
  double kwh_per_gb = 0;  ///< energy that the network spends on each GB that it sends
};

/// The table [costs] of a scenario.
struct Costs {
  std::string currency;  ///< name of the currency in tables, "EUR"; empty: money has no unit
  double per_kwh = 0;    ///< money for a kWh; part of the sum
  std::vector<NodeCosts> nodes;  ///< each node's costs, by rank
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
