// What simulated sites say of each other to their operators, over a whole run: which liars are
// named by their honest neighbours, and which honest sites are accused.
//
// One thread at a time. The plan outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <sotto/sites/simulated/simulated_sites.h>

#include "process.h"

namespace sotto::sites {

class Naming {
 public:
  explicit Naming(const FaultPlan& plan) : plan_(plan) {}

  /// Notes what an honest site says of its peers at this time.
  void look(SimTime now, const Process& process);
  /// Fills in who was named, and who was accused.
  void report(SimulatedSitesReport& report) const;

 private:
  const FaultPlan& plan_;
  std::map<std::pair<Rank, Rank>, NamedLie> named_;      ///< by site and liar
  std::set<Rank> misled_;                                ///< honest sites that a liar gave a model
  std::map<std::pair<Rank, Rank>, Accusation> accused_;  ///< the first; by site and honest peer
};

}  // namespace sotto::sites
