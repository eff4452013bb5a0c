#include "drawn_scenario.h"

#include <array>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace sotto::netlab {
namespace {

/// Algorithms with a compressor that suits them, for undirected graphs and for directed ones.
constexpr std::array<std::string_view, 8> kSymmetricRuns = {
    "dpsgd",        "dcd quant:8", "choco sign",       "deepsqueeze topk:0.1",
    "d2 lazy=true", "allreduce",   "onebit-adam sign", "powergossip"};
constexpr std::array<std::string_view, 2> kOneWayRuns = {"pushsum",
                                                         "pushsum quant:8,rounding=nearest"};
constexpr std::array<std::string_view, 4> kSymmetricGraphs = {"ring", "complete", "star",
                                                              "erdos:0.6"};
constexpr std::array<std::string_view, 2> kOneWayGraphs = {"exponential", "one-peer-exponential"};

class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t number) : random_(seed * 1'000'003 + number) {}

  int whole(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  /// Uniform in the logarithm, in two digits.
  double figure(double least, double most) {
    const double at = static_cast<double>(random_() >> 11U) * 0x1p-53;
    return std::stod(fmt::format("{:.2g}", least * std::pow(most / least, at)));
  }
  bool once_in(int turns) { return whole(1, turns) == 1; }
  std::string_view one_of(const auto& values) {
    return values[static_cast<std::size_t>(whole(0, static_cast<int>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 random_;
};

/// The keys of drawn trunks; empty: there are none. Names them in `title`.
std::string draw_trunks(Draw& draw, const std::string& first, const std::string& second,
                        std::string& title) {
  std::string trunks;
  if (!draw.once_in(3)) {
    const double rate = draw.figure(5, 60);
    const double latency = draw.figure(1, 30);
    trunks += fmt::format(
        "  {{ name = \"ocean\", from = \"{}\", to = \"{}\", link = {{ bandwidth = \"{} Mbit/s\", "
        "latency = \"{} ms\" }} }},\n",
        first, second, rate, latency);
    title += fmt::format(", ocean {} Mbit/s, {} ms", rate, latency);
  }
  if (draw.once_in(3)) {
    const double rate = draw.figure(5, 60);
    trunks += fmt::format(
        "  {{ name = \"site\", nodes = \"{}\", link = {{ bandwidth = \"{} Mbit/s\" }} }},\n",
        second, rate);
    title += fmt::format(", site {} Mbit/s", rate);
  }
  return trunks.empty() ? "" : fmt::format("trunk = [\n{}]\n", trunks);
}

/// What of `link` says how much it loses; empty: nothing. Names it in `title`.
std::string draw_loss(Draw& draw, std::string& title) {
  if (draw.once_in(3)) {
    return "";
  }
  const double loss = draw.figure(0.001, 0.03);
  title += fmt::format(", {} % lost", 100 * loss);
  return fmt::format(", loss = {}", loss);
}

}  // namespace

DrawnScenario draw_scenario(std::uint64_t seed, std::uint64_t number, std::uint64_t rounds,
                            const DrawnKinds& kinds) {
  Draw draw(seed, number);
  DrawnScenario made;
  const int nodes = draw.whole(4, 10);
  const int half = draw.whole(1, nodes - 1);  // the first node of the second group
  const std::string first = half == 1 ? "0" : fmt::format("0-{}", half - 1);
  const std::string second =
      half == nodes - 1 ? fmt::to_string(half) : fmt::format("{}-{}", half, nodes - 1);
  made.title = fmt::format("{} nodes", nodes);
  const bool directed = draw.once_in(4);
  const auto graph = directed ? draw.one_of(kOneWayGraphs) : draw.one_of(kSymmetricGraphs);
  const auto run = directed ? draw.one_of(kOneWayRuns) : draw.one_of(kSymmetricRuns);
  made.words = fmt::format("{} {}", run, graph);
  made.transport = draw.once_in(2) ? "gloo" : "zmq";
  std::string hosts;
  for (const std::string* const group : {&first, &second}) {
    const double up = draw.figure(3, 100);
    const double down = draw.once_in(2) ? up : draw.figure(3, 100);
    hosts += fmt::format("  {{ nodes = \"{}\", up = \"{} Mbit/s\", down = \"{} Mbit/s\" }},\n",
                         *group, up, down);
    made.title += fmt::format("{}{}/{}", group == &first ? ", hosts " : ", ", up, down);
  }
  const double latency = draw.figure(1, 40);
  std::string between;
  double far = latency;
  if (draw.once_in(2)) {
    far = draw.figure(latency, 80);
    between = fmt::format(
        "between = [{{ from = \"{}\", to = \"{}\", link = {{ latency = \"{} ms\", bandwidth = \"{} "
        "Mbit/s\" }} }}]\n",
        first, second, far, draw.figure(5, 100));
  }
  made.title += fmt::format(" Mbit/s, {} ms, {} ms between halves", latency, far);
  std::string events;
  if (draw.once_in(3)) {
    const double at = draw.figure(0.5, 2);
    const double rate = draw.figure(3, 30);
    events = fmt::format(
        "[[events]]\nat = \"{} s\"\nfrom = \"{}\"\nto = \"{}\"\nlink = {{ bandwidth = \"{} "
        "Mbit/s\" }}\n",
        at, first, second, rate);
    made.title += fmt::format(", {} Mbit/s from {} s on", rate, at);
  }
  const int width = draw.whole(16, 64);
  const double gradient_ms = draw.figure(5, 40);
  const std::string trunks = kinds.trunks ? draw_trunks(draw, first, second, made.title) : "";
  const std::string loss = kinds.losses ? draw_loss(draw, made.title) : "";
  made.text = fmt::format(
      "sotto-scenario = 1\ntitle = \"{}\"\nrun = [\"{}\"]\nseed = {}\n"
      "[nodes]\ncount = {}\ngradient = \"lognormal:{} ms,0.2\"\n"
      "[network]\nlink = {{ latency = \"{} ms\"{} }}\nhosts = [\n{}]\n{}{}{}"
      "[task]\nmodel = \"mlp:{}\"\nbatch = 8\nrounds = {}\n",
      made.title, made.words, number, nodes, gradient_ms, latency, loss, hosts, between, trunks,
      events, width, rounds);
  return made;
}

}  // namespace sotto::netlab
