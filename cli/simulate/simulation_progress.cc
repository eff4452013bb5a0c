#include "simulation_progress.h"

#include <memory>

#include <fmt/format.h>

#include <sotto/console/output.h>

#include "terminal/progress.h"
#include "terminal/progress_line.h"

namespace sotto::cli {
namespace {

class SimulationProgress final : public Observer {
 public:
  SimulationProgress(bool bar, SimulationWarnings warnings, Round rounds)
      : bar_(bar), warnings_(warnings), rounds_(rounds) {}

  void round_done(Round done) override {
    bar_.bar(done, rounds_, fmt::format("round {}/{}", done, rounds_));
  }
  void warning(const std::string& text) override {
    if (warnings_ == SimulationWarnings::shown) {
      bar_.clear();
      console::warn(text);
    }
  }

 private:
  ProgressLine bar_;
  SimulationWarnings warnings_;
  Round rounds_;
};

}  // namespace

study::MakeObserver show_simulations(bool progress, SimulationWarnings warnings) {
  return [bar = bar_alone(!progress).bar, warnings](Round rounds) {
    return std::make_unique<SimulationProgress>(bar, warnings, rounds);
  };
}

}  // namespace sotto::cli
