(function(){document.body.append(document.createElement("p"))})();
