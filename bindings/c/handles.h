// What stands behind the handles of sotto.h. Each is made and destroyed by its functions alone.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/store.h>
#include <sotto/compress/compressor.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer.h>

#include "sotto.h"

struct sotto_layout {
  sotto::ParameterLayout blocks;
};

struct sotto_store {
  std::shared_ptr<sotto::Store> store;
};

struct sotto_optimizer {
  sotto_optimizer(sotto::OptimizerOptions options, std::span<float> parameters,
                  const sotto::ParameterLayout& layout)
      : optimizer(std::move(options), parameters, layout), dimension(parameters.size()) {}

  sotto::Optimizer optimizer;
  std::size_t dimension;
  bool begun = false;     ///< begin_step without its step
  bool finished = false;  ///< no step may follow
  sotto::Status broken;   ///< by a state that could not be taken
  std::atomic_flag busy;
};

struct sotto_compressor {
  std::unique_ptr<sotto::Compressor> compressor;
  std::atomic_flag busy;
};

struct sotto_topology {
  std::shared_ptr<const sotto::Topology> topology;
};
