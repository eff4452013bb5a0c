#include <sotto/sites/process/site_run.h>

#include <utility>
#include <vector>

namespace sotto {
namespace {

class SiteRun {
 public:
  SiteRun(const SiteOptions& options, std::unique_ptr<SiteFolder> folder, Task& task,
          std::span<float> parameters, const SiteListener& listener)
      : task_(task),
        parameters_(parameters),
        gradient_(parameters.size()),
        site_(options, std::move(folder), parameters, task.layout(), listener) {}

  Status train(Round eval_every) {
    Status status = site_.connect();
    while (status.ok() && !site_.over()) {
      const auto step = site_.trains() ? take_step() : site_.relay();
      status = step.status();
      if (step.ok() && step->exchanged && eval_every > 0 && step->round % eval_every == 0) {
        site_.evaluated(task_.evaluate(parameters_));
        evaluated_ = step->round;
      }
    }
    return status.fault() == Fault::stopped ? Status() : status;
  }
  /// A site that is told to stop does not wait for an evaluation.
  Status end(Round rounds) {
    if (rounds > 0 && site_.round() >= rounds && evaluated_ != site_.round()) {
      site_.evaluated(task_.evaluate(parameters_));
    }
    return site_.over() && !(rounds > 0 && site_.round() >= rounds) ? site_.leave()
                                                                    : site_.finish();
  }
  SiteResult result() const { return site_.result(); }
  /// The site tells its faults itself, but for a gradient that it did not take.
  void tell_own_fault(const Status& status, const SiteListener& listener) const {
    if (site_.report().phase != SitePhase::failed) {
      listener({.level = SiteEvent::Level::error,
                .kind = SiteEvent::Kind::failed,
                .text = status.message(),
                .round = site_.round()});
    }
  }

 private:
  Result<SiteStep> take_step() {
    const double loss = task_.loss_and_gradient(site_.next_step(), parameters_, gradient_);
    return site_.step(gradient_, loss);
  }

  Task& task_;
  const std::span<float> parameters_;
  std::vector<float> gradient_;
  SiteOptimizer site_;
  Round evaluated_ = 0;
};

}  // namespace

Result<SiteResult> run_site(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                            Task& task, std::span<float> parameters, Round eval_every,
                            const SiteListener& listener) {
  SiteRun run(options, std::move(folder), task, parameters, listener);
  Status status = run.train(eval_every);
  if (status.ok()) {
    status = run.end(options.rounds);
  }
  if (!status.ok()) {
    run.tell_own_fault(status, listener);
    return status;
  }
  return run.result();
}

}  // namespace sotto
