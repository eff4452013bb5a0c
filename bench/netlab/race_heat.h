// One run of one contender, and what `netlab race` and `netlab finish` share. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/trainers/local_processes.h>

#include "contender_words.h"
#include "lab_commands.h"
#include "race_result.h"

namespace sotto::netlab {

/// What both commands ask for.
struct HeatRequest {
  LabRequest lab;
  CourseShape course;
  std::vector<std::string> only;
  std::string python = "/usr/bin/python3";
  std::uint64_t repeats = 3;
  double patience_s = 600;  ///< of one run
};

/// `request` must live as long as the command; `rivals` are those that --only chooses from.
void add_heat_options(CLI::App& command, HeatRequest& request, const std::string& rivals);

/// The course with its contenders. Says on standard error what is done.
class Meeting {
 public:
  /// Throws Error for a request that is wrong, and where no network can be emulated.
  Meeting(const HeatRequest& request, std::vector<Contender> contenders);

  const Course& course() const { return course_; }
  /// What a link is like, by plain TCP; says so where it is not what was asked for.
  study::Json links() const;
  /// One standing for each contender, with a failure for those that cannot run here.
  std::vector<Standing> line_up() const;
  /// Runs every contender without a failure once, one after the other; `take` gets what came and
  /// returns the seconds that count, if there are any, or what is wrong. Done early on Ctrl-C.
  using Take = std::function<Result<std::optional<double>>(Standing&, const JobEnd&)>;
  using Ask = std::function<JobRequest(const Contender&)>;
  void heat(std::vector<Standing>& standings, const Ask& ask, const Take& take,
            const std::string& title) const;

 private:
  void say(const std::string& what) const;

  const HeatRequest& request_;
  std::vector<Contender> contenders_;
  Runners runners_;
  PrivateDirectory folder_;  ///< made before the course, which has a thread
  Course course_;
};

}  // namespace sotto::netlab
