// Nodes through the C library, for tests.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sotto.h>
#include <nlohmann/json.hpp>

namespace sotto::test {

template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* held) const { destroy(held); }
};
using CStore = std::unique_ptr<sotto_store, Destroy<sotto_store, sotto_store_destroy>>;
using CLayout = std::unique_ptr<sotto_layout, Destroy<sotto_layout, sotto_layout_destroy>>;
using COptimizer =
    std::unique_ptr<sotto_optimizer, Destroy<sotto_optimizer, sotto_optimizer_destroy>>;
using CInterrupt =
    std::unique_ptr<sotto_interrupt, Destroy<sotto_interrupt, sotto_interrupt_destroy>>;
using CRule = std::unique_ptr<sotto_step_rule, Destroy<sotto_step_rule, sotto_step_rule_destroy>>;
using CSetup = std::unique_ptr<sotto_optimizer_setup,
                               Destroy<sotto_optimizer_setup, sotto_optimizer_setup_destroy>>;
using CCompressor =
    std::unique_ptr<sotto_compressor, Destroy<sotto_compressor, sotto_compressor_destroy>>;
using CTopology = std::unique_ptr<sotto_topology, Destroy<sotto_topology, sotto_topology_destroy>>;

using Words = std::vector<std::string>;

/// `words` as the library takes settings; valid as long as they are.
inline std::vector<const char*> as_settings(const Words& words) {
  std::vector<const char*> settings;
  for (const std::string& word : words) {
    settings.push_back(word.c_str());
  }
  settings.push_back(nullptr);
  return settings;
}

inline CStore c_store() {
  sotto_store* store = nullptr;
  REQUIRE(sotto_store_create(&store) == SOTTO_OK);
  return CStore(store);
}

/// Null, with sotto_last_error, when it is refused.
inline COptimizer c_optimizer(const Words& words, std::vector<float>& x,
                              sotto_store* store = nullptr, const sotto_layout* layout = nullptr) {
  sotto_optimizer* made = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status =
      sotto_optimizer_create(settings.data(), x.data(), x.size(), layout, store, &made);
  CHECK((status == SOTTO_OK) == (made != nullptr));
  return COptimizer(made);
}

/// What a setup is made of; null: not set.
struct CParts {
  const sotto_layout* layout = nullptr;
  const sotto_store* store = nullptr;
  const sotto_interrupt* interrupt = nullptr;
  const sotto_step_rule* rule = nullptr;
};

inline CSetup c_setup(const CParts& parts) {
  sotto_optimizer_setup* made = nullptr;
  REQUIRE(sotto_optimizer_setup_create(&made) == SOTTO_OK);
  CSetup setup(made);
  CHECK(sotto_optimizer_setup_set_layout(made, parts.layout) == SOTTO_OK);
  CHECK(sotto_optimizer_setup_set_store(made, parts.store) == SOTTO_OK);
  CHECK(sotto_optimizer_setup_set_interrupt(made, parts.interrupt) == SOTTO_OK);
  CHECK(sotto_optimizer_setup_set_step_rule(made, parts.rule) == SOTTO_OK);
  return setup;
}

/// Null, with sotto_last_error, when it is refused.
inline COptimizer c_optimizer_from(const sotto_optimizer_setup* setup, const Words& words,
                                   std::vector<float>& x) {
  sotto_optimizer* made = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status =
      sotto_optimizer_create_from(setup, settings.data(), x.data(), x.size(), &made);
  CHECK((status == SOTTO_OK) == (made != nullptr));
  return COptimizer(made);
}

/// Frees the text.
inline nlohmann::json c_json(char* text) {
  const std::unique_ptr<void, Destroy<void, sotto_free>> held(text);
  return nlohmann::json::parse(static_cast<const char*>(held.get()));
}

/// What is told of a node.
inline nlohmann::json c_report(sotto_optimizer* optimizer) {
  char* text = nullptr;
  REQUIRE(sotto_optimizer_report(optimizer, &text) == SOTTO_OK);
  return c_json(text);
}

/// A node's state; empty, with sotto_last_error, when it cannot be had.
inline std::vector<std::byte> c_state(sotto_optimizer* optimizer) {
  void* bytes = nullptr;
  std::size_t size = 0;
  const sotto_status status = sotto_optimizer_save(optimizer, &bytes, &size);
  CHECK((status == SOTTO_OK) == (bytes != nullptr));
  const std::unique_ptr<void, Destroy<void, sotto_free>> held(bytes);
  const auto* first = static_cast<const std::byte*>(bytes);
  return {first, first + size};
}

inline bool says(const std::string& what) {
  const std::string error = sotto_last_error();
  const bool found = error.find(what) != std::string::npos;
  CHECK_MESSAGE(found, "'", error, "' does not say '", what, "'");
  return found;
}

/// Runs `node` for every rank at once.
inline void c_play(int nodes, const std::function<void(int)>& node) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&node, rank] { node(rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace sotto::test
