// What the runs of `frontier` came to on one kind of work: figures, table, plots. Pure functions;
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/base/json.h>
#include <sotto/study/spread.h>
#include <sotto/trainers/result.h>

#include "entrant.h"
#include "trial.h"

namespace sotto::bench {

using History = std::vector<HistoryPoint>;

/// All that was run of one entrant.
struct EntrantRuns {
  Entrant entrant;
  double rate = 0;                      ///< the rate of the least loss with the first seed
  std::vector<History> searched = {};   ///< the first seed's runs, one a rate of the entrant
  std::vector<History> histories = {};  ///< of all seeds, at `rate`; empty: the run failed
  /// Virtual second of the end of each round, a list for each network.
  std::vector<std::vector<double>> round_times = {};
};

/// What an entrant came to on one network.
struct NetworkFigures {
  study::Spread loss;  ///< loss after the seconds in which the quickest entrant does all rounds
  /// Seconds to the target, the mean over seeds; none where one of them misses it.
  std::optional<double> to_target_s;
  double all_rounds_s = 0;
};

/// A row of the table.
struct Row {
  std::string name;
  std::string words;
  study::Spread loss;  ///< after all rounds
  double bytes = 0;    ///< that a node sends, mean over nodes and seeds
  double fewer = 0;    ///< the first entrant's bytes over these
  double state_floats = 0;
  std::vector<NetworkFigures> networks;
};

/// The figures of one kind of work.
struct Table {
  double target = 0;  ///< loss to be reached
  std::vector<double> equal_seconds =
      {};  ///< by network: the quickest entrant's time for all rounds
  std::vector<Row> rows = {};
};

/// Loss and time of a history on a network, each evaluation at its round's end.
History timed(const History& history, const std::vector<double>& round_times);
/// The loss after so many seconds, linearly between evaluations; of a later time the last, of one
/// before the first evaluation the first.
double loss_at(const History& timed, double seconds);
/// The index of the least final loss; that of a run that failed is none of them.
std::size_t best_of(const std::vector<History>& searched);

/// Sums up. `target`: the loss to be reached; by default the first entrant's final loss, the mean
/// over seeds, and a twentieth of a nat.
Table tabulate(const std::vector<EntrantRuns>& runs, const Conditions& conditions,
               std::optional<double> target);

/// The table in Markdown.
std::string markdown(const Table& table, const std::vector<Network>& networks);
/// The table and what was searched.
Json json_of(const Table& table, const std::vector<EntrantRuns>& runs,
             const std::vector<Network>& networks);
/// Loss over virtual seconds, a plot for each network, as an SVG.
std::string plots(const std::vector<EntrantRuns>& runs, const Table& table,
                  const std::vector<Network>& networks);

}  // namespace sotto::bench
