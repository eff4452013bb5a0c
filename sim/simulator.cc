#include <sotto/sim/simulator.h>

#include <utility>

#include "engine/engine.h"

namespace sotto {

Simulator::Simulator(const Platform& platform, SimulatorOptions options,
                     std::vector<std::unique_ptr<Algorithm>> algorithms, GradientFunction gradient,
                     SimulatorHooks hooks)
    : engine_(std::make_unique<Engine>(platform, std::move(options), std::move(algorithms),
                                       std::move(gradient), std::move(hooks))) {}

Simulator::~Simulator() = default;

SimulationReport Simulator::run() { return engine_->run(); }

const Algorithm& Simulator::node(std::size_t rank) const { return engine_->algorithm(rank); }

}  // namespace sotto
