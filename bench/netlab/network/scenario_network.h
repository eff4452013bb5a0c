// From a scenario to an emulated network. One thread at a time.
#pragma once

#include <memory>

#include <sotto/study/scenario/scenario.h>

#include "emulated_network.h"

namespace sotto::netlab {

/// Throws Error for what cannot be emulated.
void check_emulable(const study::Scenario& scenario);

/// Bytes per second on the narrowest part of the way from one host to another; kUnlimited: none.
double link_limit(const study::Scenario& scenario, Host from, Host to);

/// The scenario's network as it is at time 0, with or without a second one past its links.
std::unique_ptr<EmulatedNetwork> make_network(const study::Scenario& scenario,
                                              bool free_net = true);

}  // namespace sotto::netlab
